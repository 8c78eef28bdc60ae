// SPDX-License-Identifier: Apache-2.0
// The words of each rule set against those of the `tokenizers` library (pre_tokenizer.json).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/tokenizer/pre_tokenizer.h"
#include "tests/common/tokenizer/vocabularies.h"

namespace setu::tokenizer {
namespace {

TEST(PreTokenizerRules, WordsAreThoseOfTheReference) {
  const nlohmann::json data = ReadJson("tests/common/tokenizer/pre_tokenizer.json");
  ASSERT_GE(data["words"].size(), 10u);
  for (const auto& [name, expected] : data["words"].items()) {
    const auto rules = FindPreTokenizer(name);
    ASSERT_TRUE(rules.ok()) << rules.status();
    const auto words = PreTokenizer::Compile(rules->patterns);
    ASSERT_TRUE(words.ok()) << words.status();
    for (size_t i = 0; i < data["texts"].size(); ++i) {
      const std::string text = data["texts"][i];
      std::vector<std::string> split;
      ASSERT_TRUE(words
                      ->Split(text,
                              [&](std::string_view word) {
                                split.emplace_back(word);
                                return absl::OkStatus();
                              })
                      .ok());
      EXPECT_EQ(split, expected[i].get<std::vector<std::string>>()) << name << ": " << text;
    }
  }
}

TEST(PreTokenizerRules, AnUnknownNameIsAnErrorThatNamesTheKnown) {
  for (const char* name : {"", "gpt-5", "SMOLLM"}) {
    const auto rules = FindPreTokenizer(name);
    EXPECT_EQ(rules.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(rules.status().message().find(std::string("'") + name + "'"), std::string::npos);
    EXPECT_NE(rules.status().message().find("smollm"), std::string::npos);
  }
}

// A run of one kind of character must cost a constant per byte, whichever alternative takes it.
TEST(PreTokenizerRules, LongRunsStayWithinLinearWork) {
  const nlohmann::json data = ReadJson("tests/common/tokenizer/pre_tokenizer.json");
  for (const auto& [name, unused] : data["words"].items()) {
    const auto words = PreTokenizer::Compile(FindPreTokenizer(name)->patterns);
    ASSERT_TRUE(words.ok());
    for (const char* unit :
         {"a", "A", " ", "\n", " \n", "^", "7", "_", "\u0301", "日", "'", "aA"}) {
      std::string text;
      while (text.size() < 200'000) text += unit;
      for (const char* tail : {"", "x", " "}) {
        size_t bytes = 0;
        const absl::Status status = words->Split(text + tail, [&](std::string_view word) {
          bytes += word.size();
          return absl::OkStatus();
        });
        EXPECT_TRUE(status.ok()) << name << " '" << unit << "': " << status;
        EXPECT_EQ(bytes, text.size() + std::string_view(tail).size());
      }
    }
  }
}

}  // namespace
}  // namespace setu::tokenizer
