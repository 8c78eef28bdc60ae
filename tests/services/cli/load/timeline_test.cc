// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/timeline.h"

#include <gtest/gtest.h>

namespace setu::cli {
namespace {

using std::chrono::milliseconds;

TEST(Timeline, CountsEachSecond) {
  Timeline timeline;
  timeline.Sent(milliseconds(100));
  timeline.FirstToken(milliseconds(300), 200);
  timeline.Tokens(milliseconds(300), 1);
  for (int i = 0; i < 99; ++i) timeline.Between(milliseconds(900), 10, 1);
  timeline.Between(milliseconds(999), 500, 1);
  timeline.Tokens(milliseconds(999), 100);
  timeline.Ended(milliseconds(1000), true);
  timeline.Ended(milliseconds(1500), false);

  const std::vector<Second>& seconds = timeline.Seconds();
  ASSERT_EQ(seconds.size(), 2u);
  EXPECT_EQ(seconds[0].sent, 1);
  EXPECT_EQ(seconds[0].tokens, 101);
  EXPECT_EQ(seconds[0].first_token->p50_ms, 200);
  EXPECT_EQ(seconds[0].between->p50_ms, 10);
  EXPECT_EQ(seconds[0].between->p99_ms, 10);
  EXPECT_EQ(seconds[1].ok, 1);
  EXPECT_EQ(seconds[1].failed, 1);
  EXPECT_FALSE(seconds[1].first_token);
  EXPECT_FALSE(seconds[1].between);
}

TEST(Timeline, ShowsAStallAsSecondsWithNothing) {
  Timeline timeline;
  timeline.Tokens(milliseconds(5100), 1);
  timeline.Tokens(milliseconds(8100), 1);
  const std::vector<Second>& seconds = timeline.Seconds();
  ASSERT_EQ(seconds.size(), 4u);
  EXPECT_EQ(seconds[0].second, 5);
  EXPECT_EQ(seconds[1].tokens, 0);
  EXPECT_EQ(seconds[3].second, 8);
}

TEST(Timeline, OfALaterRoundStandsBehind) {
  Timeline first, later;
  first.Tokens(milliseconds(100), 1);
  later.Tokens(milliseconds(9100), 2);
  first.Append(later);
  ASSERT_EQ(first.Seconds().size(), 2u);
  EXPECT_EQ(first.Seconds()[1].second, 9);
}

}  // namespace
}  // namespace setu::cli
