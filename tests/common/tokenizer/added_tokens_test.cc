// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/added_tokens.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace setu::tokenizer {
namespace {

std::vector<TokenId> AllIds(const AddedTokens& tokens, std::string_view text) {
  std::vector<TokenId> ids;
  for (auto match = tokens.Find(text, 0); match; match = tokens.Find(text, match->end)) {
    ids.push_back(match->id);
  }
  return ids;
}

TEST(AddedTokens, NoneMatchesNothing) { EXPECT_FALSE(AddedTokens().Find("text", 0)); }

TEST(AddedTokens, TheLeftmostWinsThenTheLongest) {
  AddedTokens tokens;
  tokens.Add("<a>", 1);
  tokens.Add("<a><b>", 2);
  tokens.Add("<b>", 3);
  tokens.Add("a><", 4);
  EXPECT_EQ(AllIds(tokens, "<a><b><a>x<b>"), (std::vector<TokenId>{2, 1, 3}));
  const auto match = tokens.Find("xx<a>", 1);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->begin, 2u);
  EXPECT_EQ(match->end, 5u);
}

TEST(AddedTokens, AnUnfinishedTokenAtTheEndIsText) {
  AddedTokens tokens;
  tokens.Add("<end>", 1);
  EXPECT_FALSE(tokens.Find("<end", 0));
  EXPECT_FALSE(tokens.Find(std::string_view("<end>", 4), 0));
}

TEST(AddedTokens, AgreesWithTryingEveryToken) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const auto word = [&](size_t length) {
      std::string text;
      for (size_t i = 0; i < length; ++i) text += "ab<"[random() % 3];
      return text;
    };
    std::vector<std::string> texts;
    AddedTokens tokens;
    for (TokenId id = 0; id < 5; ++id) {
      texts.push_back(word(1 + random() % 4) + "#" + std::to_string(id));
      texts.back().resize(1 + random() % texts.back().size());
      tokens.Add(texts.back(), id);
    }
    const std::string text = word(30);
    std::vector<std::string> expected;
    for (size_t at = 0; at < text.size();) {
      std::string best;
      for (const std::string& token : texts) {
        if (text.compare(at, token.size(), token) == 0 && token.size() > best.size()) best = token;
      }
      if (!best.empty()) expected.push_back(best);
      at += best.empty() ? 1 : best.size();
    }
    std::vector<std::string> found;
    for (TokenId id : AllIds(tokens, text)) found.push_back(texts[id]);
    EXPECT_EQ(found, expected) << text;
  }
}

}  // namespace
}  // namespace setu::tokenizer
