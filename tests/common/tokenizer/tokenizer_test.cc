// SPDX-License-Identifier: Apache-2.0
// The default model's tokenizer against the golden data, and streams against whole texts.
#include "common/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "common/model/gguf.h"
#include "common/tokenizer/utf8.h"
#include "tests/common/tokenizer/vocabularies.h"

namespace setu::tokenizer {
namespace {

class DefaultModel : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto file = model::GgufFile::Open(ModelPath());
    ASSERT_TRUE(file.ok()) << file.status() << "; fetch it with tests/run.sh";
    auto tokenizer = Tokenizer::FromGguf(**file);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(DefaultModel, IdsAndTextsAreThoseOfTheGoldenData) {
  const nlohmann::json golden = ReadJson("tests/golden/tokenizer.json");
  ASSERT_EQ(golden["strings"].size(), 193u);
  for (const auto& string : golden["strings"]) {
    const std::string text = string["text"];
    const Ids parsed = Encode(*tokenizer_, text, {.parse_special = true});
    const Ids plain = Encode(*tokenizer_, text);
    EXPECT_EQ(parsed, string["ids_parse_special"].get<Ids>()) << text;
    EXPECT_EQ(plain, string["ids_plain"].get<Ids>()) << text;
    EXPECT_EQ(tokenizer_->Decode(parsed, true), text);
    EXPECT_EQ(tokenizer_->Decode(plain, false), text);
  }
}

TEST_F(DefaultModel, SaysWhatTheFileDeclares) {
  EXPECT_EQ(tokenizer_->vocabulary(), 49152);
  EXPECT_EQ(tokenizer_->bos_text(), "<|im_start|>");
  EXPECT_EQ(tokenizer_->eos_text(), "<|im_end|>");
  EXPECT_EQ(tokenizer_->end_ids(), (Ids{0, 2}));
}

TEST_F(DefaultModel, TheBytesItLacksAreErrorsAtTheirOffset) {
  int lacking = 0;
  for (char byte = 0; byte >= 0 && byte < 0x7F; ++byte) {
    const auto ids = tokenizer_->Encode(std::string("ab") + byte, {});
    if (ids.ok()) continue;
    ++lacking;
    EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(ids.status().message().find("offset 2"), std::string::npos) << ids.status();
  }
  EXPECT_EQ(lacking, 6);  // the other 15 of the 21 lead no character or a rare one
  EXPECT_EQ(tokenizer_->Encode("ab\U00050000", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DefaultModel, RandomTextComesBackWithoutControlIds) {
  std::mt19937 random(17);
  for (int round = 0; round < 500; ++round) {
    const std::string text = RandomText(random, random() % 60);
    const Ids ids = Encode(*tokenizer_, text);
    EXPECT_EQ(tokenizer_->Decode(ids, false), text);
    for (TokenId id : ids) EXPECT_FALSE(tokenizer_->Bytes(id, false).empty()) << text;
  }
}

TEST_F(DefaultModel, AStreamGivesTheWholeTextInWholeCharacters) {
  std::mt19937 random(19);
  for (int round = 0; round < 300; ++round) {
    Ids ids(random() % 40);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % 49152);  // often broken UTF-8
    StreamDecoder decoder(*tokenizer_);
    std::string text;
    for (TokenId id : ids) {
      const std::string part = decoder.Push(id);
      std::string copy = part;
      std::string whole;
      TakeWholeUtf8(copy, whole);
      EXPECT_EQ(whole, part);
      text += part;
    }
    text += decoder.Flush();
    EXPECT_FALSE(decoder.holding());
    EXPECT_EQ(text, tokenizer_->Decode(ids, false));
  }
}

TEST_F(DefaultModel, LongRuns) {
  for (const char* unit : {"x", "^", " ", "\n", "_", "9", "\u0301", "日"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    EXPECT_EQ(tokenizer_->Decode(Encode(*tokenizer_, text), false), text) << unit;
  }
}

TEST(StreamDecoder, HoldsACharacterUntilItIsWhole) {
  const auto tokenizer = Make(TrainedSpm("bare"));
  StreamDecoder decoder(*tokenizer);
  std::vector<std::string> parts;
  for (TokenId id : Encode(*tokenizer, "🙂a")) parts.push_back(decoder.Push(id));
  EXPECT_EQ(parts, (std::vector<std::string>{"", "", "", "🙂", "a"}));
  decoder.Push(Encode(*tokenizer, "日").front());
  EXPECT_TRUE(decoder.holding());
  EXPECT_EQ(decoder.Flush(), "\uFFFD");
  EXPECT_EQ(decoder.Flush(), "");
}

TEST(StreamDecoder, KeepsALeadingSpace) {
  const auto tokenizer = Make(TrainedSpm("prefixed"));
  StreamDecoder decoder(*tokenizer);
  std::string text;
  for (TokenId id : Encode(*tokenizer, "hello")) text += decoder.Push(id);
  EXPECT_EQ(text, " hello");
}

}  // namespace
}  // namespace setu::tokenizer
