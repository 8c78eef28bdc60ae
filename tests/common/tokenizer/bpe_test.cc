// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/common/tokenizer/vocabularies.h"

namespace setu::tokenizer {
namespace {

std::vector<std::string> Pieces(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> pieces;
  for (TokenId id : Encode(tokenizer, text)) pieces.emplace_back(tokenizer.Bytes(id));
  return pieces;
}

using Strings = std::vector<std::string>;

TEST(Bpe, TheFirstLearntPairMergesFirst) {
  EXPECT_EQ(Pieces(*Make(AsciiBpe({"b c", "a b"})), "abc"), (Strings{"a", "bc"}));
  EXPECT_EQ(Pieces(*Make(AsciiBpe({"a b", "b c"})), "abc"), (Strings{"ab", "c"}));
}

TEST(Bpe, OfEqualPairsTheLeftmost) {
  EXPECT_EQ(Pieces(*Make(AsciiBpe({"a a"})), "aaaaa"), (Strings{"aa", "aa", "a"}));
}

TEST(Bpe, ProductsMergeOn) {
  const auto tokenizer = Make(AsciiBpe({"l l", "h e", "he ll", "hell o", "Ġ hello"}));
  EXPECT_EQ(Pieces(*tokenizer, "hello hello"), (Strings{"hello", " hello"}));
  EXPECT_EQ(Pieces(*tokenizer, "hel lo"), (Strings{"he", "l", " ", "l", "o"}));
}

TEST(Bpe, WordsOfWholeWordModelsNeedNoMerges) {
  Vocabulary v = AsciiBpe({"a b"});
  v.texts.push_back("abc");
  v.types.push_back(TokenType::kNormal);
  EXPECT_EQ(Pieces(*Make(v), "abc"), (Strings{"ab", "c"}));
  v.pre = "llama-bpe";
  EXPECT_EQ(Pieces(*Make(v), "abc"), (Strings{"abc"}));
}

TEST(Bpe, AByteWithoutATokenIsAnErrorAtItsOffset) {
  const auto tokenizer = Make(AsciiBpe({}));
  const auto ids = tokenizer->Encode("ok ok é", {});
  EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(ids.status().message().find("0xc3 at offset 6"), std::string::npos) << ids.status();
}

TEST(Bpe, AMergeOfUnknownPartsIsRefused) {
  for (const char* merge : {"a é", "ab", "", " ", "a", "a  b", "<e nd>"}) {
    Vocabulary v = AsciiBpe({}, {"<end>", "<e", "nd>"});
    v.merges = {merge};
    const auto tokenizer = VocabularyTokenizer::Create(v);
    EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument) << merge;
    EXPECT_NE(tokenizer.status().message().find("merges[0]"), std::string::npos);
  }
}

// The textbook algorithm: look for the best pair again after every merge.
Strings MergeSlowly(Strings symbols, const Strings& merges) {
  for (;;) {
    size_t best_rank = merges.size();
    size_t best_at = 0;
    for (size_t at = 0; at + 1 < symbols.size(); ++at) {
      const auto found =
          std::find(merges.begin(), merges.end(), symbols[at] + " " + symbols[at + 1]);
      const auto rank = static_cast<size_t>(found - merges.begin());
      if (rank < best_rank) best_rank = rank, best_at = at;
    }
    if (best_rank == merges.size()) return symbols;
    symbols[best_at] += symbols[best_at + 1];
    symbols.erase(symbols.begin() + static_cast<long>(best_at) + 1);
  }
}

TEST(Bpe, AgreesWithTheTextbook) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Strings parts = {"a", "b", "c"};
    Strings merges;
    while (merges.size() < 8) {
      const std::string left = parts[random() % parts.size()];
      const std::string right = parts[random() % parts.size()];
      if (std::find(parts.begin(), parts.end(), left + right) != parts.end()) continue;
      merges.push_back(left + " " + right);
      parts.push_back(left + right);
    }
    Strings symbols;
    std::string word;
    for (size_t i = 0; i < 1 + random() % 40; ++i) {
      symbols.push_back(std::string(1, "abc"[random() % 3]));
      word += symbols.back();
    }
    EXPECT_EQ(Pieces(*Make(AsciiBpe(merges)), word), MergeSlowly(symbols, merges)) << word;
  }
}

// Would take hours if a merge cost more than a logarithm.
TEST(Bpe, AThreeMegabyteWord) {
  Strings merges = {"a a"};
  for (int doubling = 1; doubling < 6; ++doubling) {
    const std::string half(size_t{1} << doubling, 'a');
    merges.push_back(half + " " + half);
  }
  const auto tokenizer = Make(AsciiBpe(merges));
  const size_t letters = 3 << 20;
  EXPECT_EQ(Encode(*tokenizer, std::string(letters, 'a')).size(), letters / 64);
  EXPECT_EQ(Encode(*tokenizer, std::string(1'000'000, '^')).size(), 1'000'000u);
}

}  // namespace
}  // namespace setu::tokenizer
