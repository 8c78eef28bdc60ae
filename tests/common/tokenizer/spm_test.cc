// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/spm.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/common/tokenizer/vocabularies.h"

namespace setu::tokenizer {
namespace {

// spm.json: ids of the sentencepiece library, with a prefix space and without.
TEST(Spm, IdsAreThoseOfTheReference) {
  for (const char* name : {"prefixed", "bare"}) {
    const auto tokenizer = Make(TrainedSpm(name));
    const nlohmann::json data = ReadJson("tests/common/tokenizer/spm.json")[name];
    ASSERT_GE(data["strings"].size(), 100u);
    for (const auto& string : data["strings"]) {
      const std::string text = string["text"];
      const Ids ids = Encode(*tokenizer, text);
      EXPECT_EQ(ids, string["ids"].get<Ids>()) << name << ": " << text;
      EXPECT_EQ(tokenizer->Decode(ids, false), text);
    }
  }
}

TEST(Spm, RandomTextComesBack) {
  std::mt19937 random(5);
  for (const char* name : {"prefixed", "bare"}) {
    const auto tokenizer = Make(TrainedSpm(name));
    for (int round = 0; round < 300; ++round) {
      const std::string text = RandomText(random, random() % 40);
      EXPECT_EQ(tokenizer->Decode(Encode(*tokenizer, text), false), text);
    }
  }
}

TEST(Spm, EveryTextBetweenControlTokensHasThePrefix) {
  const auto tokenizer = Make(TrainedSpm("prefixed"));
  const Ids hello = Encode(*tokenizer, "hello");
  Ids expected = {1};
  expected.insert(expected.end(), hello.begin(), hello.end());
  expected.push_back(2);
  expected.insert(expected.end(), hello.begin(), hello.end());
  EXPECT_EQ(Encode(*tokenizer, "<s>hello</s>hello", {.parse_special = true}), expected);
}

TEST(Spm, ACharacterWithoutByteTokensIsAnErrorAtItsOffset) {
  Vocabulary v;
  v.model = "llama";
  v.texts = {"▁", "a", "▁a"};
  v.scores = {0, 0, 1};
  v.types.assign(3, TokenType::kNormal);
  v.add_bos = false;
  const auto tokenizer = Make(v);
  EXPECT_EQ(Encode(*tokenizer, "a a"), (Ids{2, 2}));
  const auto ids = tokenizer->Encode("a  aé", {});
  EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(ids.status().message().find("0xc3 at offset 4"), std::string::npos) << ids.status();
}

TEST(Spm, AThreeMegabyteText) {
  const auto tokenizer = Make(TrainedSpm("bare"));
  for (const char* unit : {"a", " ", "^", "banana "}) {
    std::string text;
    while (text.size() < 3 << 20) text += unit;
    EXPECT_EQ(tokenizer->Decode(Encode(*tokenizer, text), false), text);
  }
}

}  // namespace
}  // namespace setu::tokenizer
