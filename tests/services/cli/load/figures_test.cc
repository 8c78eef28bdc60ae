// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace setu::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Tally OneAnswer(int first_token_ms) {
  Tally tally({}, TimePoint{});
  RequestTrack track{
      .planned = TimePoint{}, .prompt_tokens = 8, .cached_tokens = 6, .reusable_tokens = 7};
  tally.OnTokens(track, TimePoint{} + milliseconds(first_token_ms), 1);
  tally.OnEnd(track, kOk, "", TimePoint{} + milliseconds(first_token_ms));
  tally.OnOver(seconds(1));
  return tally;
}

TEST(Figures, AreThoseThatARoundHasAValueFor) {
  const Figures figures = FiguresOf(OneAnswer(10));
  EXPECT_EQ(figures.at("ttft_p50_ms"), 10);
  EXPECT_EQ(figures.at("end_to_end_p99_ms"), 10);
  EXPECT_EQ(figures.at("ok_per_second"), 1);
  EXPECT_EQ(figures.at("cached_share"), 0.75);
  EXPECT_EQ(figures.at("reused_share"), 6.0 / 7);
  EXPECT_FALSE(figures.contains("itl_p50_ms")) << "one token has no gap";
  EXPECT_FALSE(figures.contains("refused_p99_ms"));
}

TEST(Figures, HaveAValueForEachRound) {
  const FigureRounds rounds = RoundsOf({OneAnswer(10), OneAnswer(30), OneAnswer(20)});
  EXPECT_THAT(rounds.at("ttft_p50_ms"), ::testing::ElementsAre(10, 30, 20));
}

TEST(Figures, MedianIsTheMiddleOrTheMeanOfBoth) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({9, 1, 3}), 3);
  EXPECT_EQ(Median({4, 1, 9, 2}), 3);
}

TEST(Figures, DifferWhereTheRangesOfTheirRoundsDoNotMeet) {
  const Difference slower = Compare("ttft_p50_ms", {10, 12, 11}, {20, 22, 24});
  EXPECT_EQ(slower.base, 11);
  EXPECT_EQ(slower.ratio, 2);
  EXPECT_EQ(slower.verdict, Verdict::kWorse);
  EXPECT_EQ(Compare("tokens_per_second", {10, 12}, {20, 22}).verdict, Verdict::kBetter);
  EXPECT_EQ(Compare("tokens_per_second", {20, 22}, {10, 12}).verdict, Verdict::kWorse);
  EXPECT_EQ(Compare("itl_p99_ms", {20, 22}, {10, 12}).verdict, Verdict::kBetter);
  EXPECT_EQ(Compare("itl_p99_ms", {10, 15}, {14, 30}).verdict, Verdict::kWithinNoise);
  EXPECT_EQ(Compare("itl_p99_ms", {10, 30}, {14, 15}).verdict, Verdict::kWithinNoise);
}

TEST(Figures, OfASingleRoundSayNothingOfTheNoise) {
  EXPECT_EQ(Compare("itl_p99_ms", {10}, {100, 100}).verdict, Verdict::kUnknown);
  EXPECT_EQ(Compare("good_per_second", {0}, {5}).ratio, std::nullopt);
}

}  // namespace
}  // namespace setu::cli
