// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/tally.h"

#include <gtest/gtest.h>

namespace setu::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{};

// An answer of three tokens: 10 ms to the first, then 2 and 4 ms.
void Answer(Tally& tally, TimePoint planned, const std::string& status = kOk) {
  RequestTrack track{
      .planned = planned, .prompt_tokens = 5, .cached_tokens = 4, .reusable_tokens = 5};
  tally.OnSent(track, planned);
  tally.OnTokens(track, planned + milliseconds(10), 1);
  tally.OnTokens(track, planned + milliseconds(12), 1);
  tally.OnTokens(track, planned + milliseconds(16), 1);
  tally.OnEnd(track, status, status == kOk ? "" : "it broke", planned + milliseconds(20));
}

void Refuse(Tally& tally, TimePoint planned) {
  const RequestTrack track{.planned = planned};
  tally.OnSent(track, planned);
  tally.OnEnd(track, "RESOURCE_EXHAUSTED", "the queue is full", planned + milliseconds(1));
}

TEST(Tally, CountsTokensAndTimes) {
  Tally tally({}, kStart);
  Answer(tally, kStart);
  Answer(tally, kStart + seconds(1));
  Refuse(tally, kStart + seconds(1));
  tally.OnOver(seconds(2));
  EXPECT_EQ(tally.ended(), 3);
  EXPECT_EQ(tally.answered(), 2);
  EXPECT_EQ(tally.generated_tokens, 6);
  EXPECT_EQ(tally.PerSecond(tally.generated_tokens), 3);
  EXPECT_EQ(tally.prompt_tokens, 10);
  EXPECT_EQ(tally.cached_tokens, 8);
  EXPECT_EQ(tally.reusable_tokens, 10);
  EXPECT_EQ(tally.first_token.most(), 10);
  EXPECT_EQ(tally.between.count(), 4);
  EXPECT_EQ(tally.between.most(), 4);
  EXPECT_EQ(tally.longest_gap.count(), 2);
  EXPECT_EQ(tally.by_status.at(kOk).most(), 20);
  EXPECT_EQ(tally.by_status.at("RESOURCE_EXHAUSTED").most(), 1);
  EXPECT_EQ(tally.first_error.at("RESOURCE_EXHAUSTED"), "the queue is full");
}

// The cluster stood still for a second and the generator with it: every request that was planned
// in that second waited, however late it was sent.
TEST(Tally, CountsFromThePlannedArrivalAndNotFromTheSending) {
  Tally tally({}, kStart);
  for (int i = 0; i < 10; ++i) {
    RequestTrack track{.planned = kStart + milliseconds(100 * i)};
    tally.OnSent(track, kStart + seconds(1));
    tally.OnTokens(track, kStart + milliseconds(1001), 1);
    tally.OnEnd(track, kOk, "", kStart + milliseconds(1001));
  }
  EXPECT_EQ(tally.first_token.most(), 1001);
  EXPECT_EQ(tally.by_status.at(kOk).mean(), 551);
  EXPECT_EQ(tally.lag.most(), 1000);
}

TEST(Tally, SplitsTheGapBeforeADeltaOfSeveralTokens) {
  Tally tally({}, kStart);
  RequestTrack track{.planned = kStart};
  tally.OnTokens(track, kStart + milliseconds(5), 4);
  tally.OnTokens(track, kStart + milliseconds(17), 3);
  EXPECT_EQ(tally.between.count(), 3) << "the first delta's four came at once";
  EXPECT_EQ(tally.between.most(), 4);
  EXPECT_EQ(track.longest_gap, milliseconds(12));
  EXPECT_EQ(tally.generated_tokens, 7);
}

TEST(Tally, GoodIsWhatKeepsItsTargets) {
  for (const auto& [targets, good] :
       std::vector<std::pair<Targets, int64_t>>{{{}, 1},
                                                {{.ttft_ms = 10, .itl_ms = 3}, 1},
                                                {{.ttft_ms = 9.9}, 0},
                                                {{.itl_ms = 2.9}, 0}}) {
    Tally tally(targets, kStart);
    Answer(tally, kStart);
    Answer(tally, kStart, "UNAVAILABLE");
    EXPECT_EQ(tally.good, good);
  }
}

TEST(Tally, IsOkWhereOnlyAFullQueueRefusedOrThePlanCancelled) {
  Tally tally({}, kStart);
  Refuse(tally, kStart);
  EXPECT_FALSE(tally.ok()) << "nothing was answered";
  Answer(tally, kStart);
  Answer(tally, kStart, kCancelledByPlan);
  EXPECT_TRUE(tally.ok());
  for (const char* failure : {"UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED", kNotSent}) {
    Tally failed = tally;
    Answer(failed, kStart, failure);
    EXPECT_FALSE(failed.ok()) << failure;
  }
}

TEST(Tally, SteadyIsWhileRequestsCame) {
  Tally tally({}, kStart);
  Answer(tally, kStart);
  tally.OnLastSent(seconds(4));
  Answer(tally, kStart + seconds(4));
  tally.OnOver(seconds(5));
  ASSERT_TRUE(tally.steady());
  EXPECT_EQ(tally.steady()->PerSecond(tally.steady()->tokens), 0.75);
  EXPECT_EQ(tally.steady()->answered, 1);

  Tally brief({}, kStart);
  brief.OnLastSent(milliseconds(1));
  Answer(brief, kStart);
  brief.OnOver(seconds(5));
  EXPECT_FALSE(brief.steady()) << "nearly all of it came after the last request";
}

TEST(Tally, MergedIsAsIfAllWereOneRound) {
  Tally one({}, kStart), two({}, kStart);
  Answer(one, kStart);
  one.OnLastSent(seconds(1));
  one.OnOver(seconds(1));
  Answer(two, kStart + seconds(9));
  Refuse(two, kStart + seconds(9));
  two.OnLastSent(seconds(1));
  two.OnOver(seconds(2));
  one.Merge(two);
  EXPECT_EQ(one.seconds, 3);
  EXPECT_EQ(one.answered(), 2);
  EXPECT_EQ(one.ended(), 3);
  EXPECT_EQ(one.generated_tokens, 6);
  EXPECT_EQ(one.steady()->answered, 2);
  EXPECT_EQ(one.first_error.count("RESOURCE_EXHAUSTED"), 1u);
  EXPECT_EQ(one.timeline.Seconds().back().second, 9);
}

}  // namespace
}  // namespace setu::cli
