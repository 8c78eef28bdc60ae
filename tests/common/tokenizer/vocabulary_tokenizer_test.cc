// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/vocabulary_tokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/common/tokenizer/vocabularies.h"

namespace setu::tokenizer {
namespace {

constexpr TokenId kA = 'a' - '!';
constexpr TokenId kBos = 96;
constexpr TokenId kEos = 97;

Vocabulary WithEnds() {
  Vocabulary v = AsciiBpe({}, {"<s>", "</s>"});
  v.bos = kBos;
  v.eos = kEos;
  return v;
}

Ids EncodeRuns(const Tokenizer& tokenizer, const std::vector<TextRun>& runs) {
  const auto ids = tokenizer.EncodeRuns(runs, false);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.value_or(Ids{});
}

TEST(VocabularyTokenizer, BosAndEosAsTheFileSays) {
  Vocabulary v = WithEnds();
  EXPECT_EQ(Encode(*Make(v), "a"), (Ids{kA}));  // a byte-level model that says nothing adds nothing
  v.add_bos = true;
  EXPECT_EQ(Encode(*Make(v), "a"), (Ids{kBos, kA}));
  EXPECT_EQ(Encode(*Make(v), ""), (Ids{kBos}));
  EXPECT_EQ(Encode(*Make(v), "a", {.add_special = false}), (Ids{kA}));
  v.add_eos = true;
  EXPECT_EQ(Encode(*Make(v), "a"), (Ids{kBos, kA, kEos}));
  EXPECT_EQ(Encode(*Make(v), ""), (Ids{kBos, kEos}));
}

TEST(VocabularyTokenizer, NeverASecondBosOrEos) {
  Vocabulary v = WithEnds();
  v.add_bos = v.add_eos = true;
  const auto tokenizer = Make(v);
  EXPECT_EQ(Encode(*tokenizer, "<s>a</s>", {.parse_special = true}), (Ids{kBos, kA, kEos}));
  // As plain text they are only characters.
  const Ids plain = Encode(*tokenizer, "<s>");
  EXPECT_EQ(plain.size(), 5u);
  EXPECT_EQ(plain.front(), kBos);
}

TEST(VocabularyTokenizer, NoBosIsInvented) {
  Vocabulary v = WithEnds();
  v.pre = "llama-bpe";  // a family that begins with BOS
  EXPECT_EQ(Encode(*Make(v), "a"), (Ids{kBos, kA}));
  v.bos.reset();
  EXPECT_EQ(Encode(*Make(v), "a"), (Ids{kA}));
}

TEST(VocabularyTokenizer, ControlTokensOnlyWhereTheyAreParsed) {
  const auto tokenizer = Make(WithEnds());
  EXPECT_EQ(EncodeRuns(*tokenizer, {{"a<s>", true}, {"</s>"}, {"</s>", true}}).size(), 7u);
  // Half of one in trusted text and half in untrusted is text.
  for (bool first : {false, true}) {
    for (TokenId id : EncodeRuns(*tokenizer, {{"a</", first}, {"s>a", !first}})) {
      EXPECT_LT(id, kBos);
    }
  }
}

TEST(VocabularyTokenizer, RunsAreOneText) {
  const auto tokenizer = Make(AsciiBpe({"h i", "Ġ hi"}, {"<s>"}));
  const Ids whole = Encode(*tokenizer, "say hi hi", {});
  EXPECT_EQ(EncodeRuns(*tokenizer, {{"say ", true}, {"hi"}, {" ", true}, {"h"}, {"i"}}), whole);
  EXPECT_EQ(EncodeRuns(*tokenizer, {}), Ids{});
}

TEST(VocabularyTokenizer, PlainTextNeverYieldsAControlId) {
  std::mt19937 random(11);
  for (const Vocabulary& v : {TrainedSpm("prefixed"), TrainedSpm("bare")}) {
    const auto tokenizer = Make(v);
    for (int round = 0; round < 500; ++round) {
      const std::string text = RandomText(random, random() % 30);
      for (TokenId id : Encode(*tokenizer, text)) {
        EXPECT_NE(v.types[id], TokenType::kControl) << text;
        EXPECT_NE(v.types[id], TokenType::kUnknown) << text;
      }
    }
  }
}

// A file may call its end token ordinary; merging must not make it all the same.
TEST(VocabularyTokenizer, BosAndEndsAreControlWhateverTheirType) {
  Vocabulary v = AsciiBpe({});
  v.texts.push_back("<stop>");
  v.types.push_back(TokenType::kUserDefined);
  EXPECT_EQ(Encode(*Make(v), "<stop>"), (Ids{96}));
  v.eos = 96;
  EXPECT_EQ(Encode(*Make(v), "<stop>").size(), 6u);
  EXPECT_EQ(Encode(*Make(v), "<stop>", {.parse_special = true}), (Ids{96}));
}

TEST(VocabularyTokenizer, UserDefinedTokensAreAlwaysWhole) {
  Vocabulary v = AsciiBpe({"Ġ a"});
  v.texts.push_back("  a");
  v.types.push_back(TokenType::kUserDefined);
  const auto tokenizer = Make(v);
  EXPECT_EQ(Encode(*tokenizer, "  a a"), (Ids{97, 96}));
  EXPECT_EQ(tokenizer->Decode(Ids{97, 96}, false), "  a a");
}

// "Ġ" is how an ordinary token writes a space; a user-defined one means the letter.
TEST(VocabularyTokenizer, AUserDefinedTokenIsItsOwnTextAlone) {
  Vocabulary v = AsciiBpe({});
  v.types[94] = TokenType::kUserDefined;
  ASSERT_EQ(v.texts[94], "Ġ");
  const auto tokenizer = Make(v);
  EXPECT_EQ(Encode(*tokenizer, "Ġ"), (Ids{94}));
  EXPECT_EQ(tokenizer->Bytes(94, false), "Ġ");
  const auto space = tokenizer->Encode("a a", {});
  EXPECT_EQ(space.status().code(), absl::StatusCode::kInvalidArgument) << "no token is a space";
}

TEST(VocabularyTokenizer, AUserDefinedTokenKeepsItsOwnLeadingSpace) {
  Vocabulary v = TrainedSpm("prefixed");
  v.texts.push_back("  x");
  v.types.push_back(TokenType::kUserDefined);
  v.scores.push_back(0);
  const auto tokenizer = Make(v);
  EXPECT_EQ(tokenizer->Decode(Encode(*tokenizer, "  x"), false), "  x");
  EXPECT_EQ(tokenizer->Decode(Encode(*tokenizer, " x"), false), " x");
}

TEST(VocabularyTokenizer, BytesOfControlTokensOnlyOnDemand) {
  const auto tokenizer = Make(WithEnds());
  EXPECT_EQ(tokenizer->Bytes(kBos, false), "");
  EXPECT_EQ(tokenizer->Bytes(kBos, true), "<s>");
  EXPECT_EQ(tokenizer->Bytes(94, false), " ");
  EXPECT_EQ(tokenizer->Decode(Ids{kBos, kA, kEos}, true), "<s>a</s>");
  EXPECT_EQ(tokenizer->Decode(Ids{kBos, kA, kEos}, false), "a");
  EXPECT_EQ(tokenizer->bos_text(), "<s>");
  EXPECT_EQ(tokenizer->eos_text(), "</s>");
  EXPECT_EQ(tokenizer->vocabulary(), 98);
}

TEST(VocabularyTokenizer, InvalidUtf8IsAnErrorAtItsOffset) {
  const auto tokenizer = Make(TrainedSpm("bare"));
  for (const char* tail : {"\xFF", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE6\x97"}) {
    const auto ids = tokenizer->Encode(std::string("fine é") + tail + "x", {});
    EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(ids.status().message().find("offset 7"), std::string::npos) << ids.status();
  }
}

TEST(VocabularyTokenizer, TooLongAnAddedTokenIsRefused) {
  const auto tokenizer = VocabularyTokenizer::Create(AsciiBpe({}, {std::string(513, 'x')}));
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(VocabularyTokenizer, AMalformedByteTokenIsRefused) {
  for (const char* text : {"<0x>", "<0xG0>", "<0x 1>", "0x41", "<0x412"}) {
    Vocabulary v = TrainedSpm("bare");
    v.texts[3] = text;
    ASSERT_EQ(v.types[3], TokenType::kByte);
    EXPECT_EQ(VocabularyTokenizer::Create(v).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// Errors go to terminals and logs: what a file says is shown short and escaped.
TEST(VocabularyTokenizer, ErrorsShowTextsOfTheFileShortAndEscaped) {
  const std::string hostile = "\x1b[2J" + std::string(10'000, 'x');
  std::vector<Vocabulary> wrong;
  wrong.push_back(TrainedSpm("bare"));
  wrong.back().model = hostile;
  wrong.push_back(TrainedSpm("bare"));
  wrong.back().texts[3] = hostile;
  wrong.push_back(AsciiBpe({}, {}));
  wrong.back().pre = hostile;
  wrong.push_back(AsciiBpe({hostile}, {}));
  for (const Vocabulary& v : wrong) {
    const absl::Status refused = VocabularyTokenizer::Create(v).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(refused.message().find("\\x1b[2J"), std::string::npos) << refused;
    EXPECT_LT(refused.message().size(), 1000u);
  }
}

// A file may say anything: it is refused, or what it makes can be used.
TEST(VocabularyTokenizer, AnyVocabularyIsRefusedOrWorks) {
  std::mt19937 random(29);
  const std::vector<Vocabulary> good = {TrainedSpm("prefixed"),
                                        AsciiBpe({"a b", "Ġ ab"}, {"</s>"})};
  int working = 0;
  for (int round = 0; round < 400; ++round) {
    Vocabulary v = good[random() % good.size()];
    const auto id = [&] { return static_cast<TokenId>(random() % (v.texts.size() + 2)) - 1; };
    for (size_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % v.texts.size();
      switch (random() % 7) {
        case 0:
          v.types[at] = static_cast<TokenType>(random() % 8);
          break;
        case 1:
          v.texts[at] = RandomText(random, random() % 3);
          break;
        case 2:
          v.bos = id();
          break;
        case 3:
          v.eos = id();
          break;
        case 4:
          v.merges.push_back(RandomText(random, 1) + " " + RandomText(random, 1));
          break;
        case 5:
          v.model = v.model == "gpt2" ? "llama" : "gpt2";
          v.scores.resize(v.texts.size());
          break;
        default:
          v.add_bos = random() % 2 == 0;
      }
    }
    const auto tokenizer = VocabularyTokenizer::Create(v);
    if (!tokenizer.ok()) {
      EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    ++working;
    const auto ids = (*tokenizer)->Encode(RandomText(random, 20), {.parse_special = true});
    EXPECT_TRUE(ids.ok() || absl::IsInvalidArgument(ids.status())) << ids.status();
    Ids all(v.texts.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<TokenId>(i);
    (*tokenizer)->Decode(all, true);
  }
  EXPECT_GT(working, 50);
}

}  // namespace
}  // namespace setu::tokenizer
