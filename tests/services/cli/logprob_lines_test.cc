// SPDX-License-Identifier: Apache-2.0
#include "services/cli/logprob_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace setu::cli {
namespace {

using ::testing::ElementsAre;

void AddToken(v1::Delta& tokens, uint32_t id, float logprob,
              const std::vector<std::pair<uint32_t, float>>& likeliest) {
  tokens.add_token_ids(id);
  v1::TokenLogprobs& token = *tokens.add_logprobs();
  token.set_logprob(logprob);
  for (const auto& [other, its] : likeliest) {
    v1::TopLogprob& top = *token.add_top();
    top.set_token_id(other);
    top.set_logprob(its);
  }
}

TEST(LogprobLines, ShowATokenALineWithWhatElseWasLikely) {
  v1::Delta tokens;
  AddToken(tokens, 7, -0.1054f, {{7, -0.1054f}, {9, -3.21f}});
  AddToken(tokens, 8, -12.5f, {});
  EXPECT_EQ(LogprobLines(tokens, {{7, " Paris"}, {8, "."}, {9, " the"}}),
            "   logprob  token (likeliest)\n"
            "    -0.105  \" Paris\" (\" Paris\" -0.105, \" the\" -3.210)\n"
            "   -12.500  \".\"\n");
  EXPECT_THAT(IdsOf(tokens), ElementsAre(7, 8, 9));
}

TEST(LogprobLines, KeepATokenOnItsLineAndShowAnIdWithoutATextOfItsOwn) {
  v1::Delta tokens;
  AddToken(tokens, 1, -1, {});
  AddToken(tokens, 2, -1, {});
  AddToken(tokens, 3, -1, {});
  AddToken(tokens, 4, -1, {});
  EXPECT_EQ(LogprobLines(tokens, {{1, "\n\"é"}, {2, ""}, {3, "\uFFFD"}}),
            "   logprob  token (likeliest)\n"
            "    -1.000  \"\\n\\\"é\"\n"
            "    -1.000  #2\n"
            "    -1.000  #3\n"
            "    -1.000  #4\n");
}

}  // namespace
}  // namespace setu::cli
