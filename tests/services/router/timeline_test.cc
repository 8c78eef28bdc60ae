// SPDX-License-Identifier: Apache-2.0
#include "services/router/timeline.h"

#include <gtest/gtest.h>

namespace setu::router {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kArrival(std::chrono::hours(3));

TimePoint At(int ms) { return kArrival + milliseconds(ms); }

Duration Sum(const Timeline& timeline, TimePoint now) {
  return timeline.In(Phase::kQueue, now) + timeline.In(Phase::kGrant, now) +
         timeline.In(Phase::kPrefill, now) + timeline.In(Phase::kDecode, now);
}

TEST(Timeline, EachPhaseLastsUntilTheNextOneBegins) {
  Timeline timeline(kArrival);
  timeline.Enter(Phase::kGrant, At(10));
  timeline.Enter(Phase::kPrefill, At(30));
  timeline.Enter(Phase::kDecode, At(60));
  const setu::v1::Timings timings = timeline.Timings(At(100));
  EXPECT_DOUBLE_EQ(timings.queue_ms(), 10);
  EXPECT_DOUBLE_EQ(timings.grant_ms(), 20);
  EXPECT_DOUBLE_EQ(timings.prefill_ms(), 30);
  EXPECT_DOUBLE_EQ(timings.decode_ms(), 40);
  EXPECT_DOUBLE_EQ(timings.first_token_ms(), 60);
}

// However far it came, and also where it skips a phase or enters one again.
TEST(Timeline, ThePhasesAreAllOfTheTimeWheneverOneLooks) {
  Timeline timeline(kArrival);
  EXPECT_EQ(Sum(timeline, At(5)), milliseconds(5));
  timeline.Enter(Phase::kGrant, At(7));
  EXPECT_EQ(Sum(timeline, At(8)), milliseconds(8));
  timeline.Enter(Phase::kGrant, At(9));
  EXPECT_EQ(timeline.In(Phase::kQueue, At(10)), milliseconds(9)) << "the first grant was refused";
  EXPECT_EQ(Sum(timeline, At(10)), milliseconds(10));
  timeline.Enter(Phase::kDecode, At(20));
  EXPECT_EQ(timeline.In(Phase::kGrant, At(33)), milliseconds(11));
  EXPECT_EQ(timeline.In(Phase::kPrefill, At(33)), Duration::zero());
  EXPECT_EQ(timeline.In(Phase::kDecode, At(33)), milliseconds(13));
  EXPECT_EQ(Sum(timeline, At(33)), milliseconds(33));
}

TEST(Timeline, WhatWasNotReachedTookNoTime) {
  Timeline timeline(kArrival);
  timeline.Enter(Phase::kGrant, At(4));
  EXPECT_EQ(timeline.phase(), Phase::kGrant);
  EXPECT_EQ(timeline.In(Phase::kGrant, At(9)), milliseconds(5));
  EXPECT_EQ(timeline.In(Phase::kDecode, At(9)), Duration::zero());
  EXPECT_EQ(timeline.Begin(Phase::kDecode, At(9)), At(9));
}

TEST(Timeline, AnAttemptEndsOnce) {
  Timeline timeline(kArrival);
  const uint32_t first = timeline.BeginAttempt("d", "p", At(1));
  const uint32_t second = timeline.BeginAttempt("d", "d", At(2));
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(second, 2u);
  timeline.EndAttempt(first, absl::UnavailableError("lost"), At(3));
  timeline.EndAttempt(first, absl::OkStatus(), At(4));
  ASSERT_EQ(timeline.attempts().size(), 2u);
  EXPECT_EQ(timeline.attempts()[0].end, At(3));
  EXPECT_EQ(timeline.attempts()[0].status, absl::UnavailableError("lost"));
  EXPECT_EQ(timeline.attempts()[1].prefill, "d");
  EXPECT_EQ(timeline.attempts()[1].end, std::nullopt);
}

TEST(Timeline, ATransferCountsForItsAttemptAndTheRequest) {
  Timeline timeline(kArrival);
  timeline.BeginAttempt("d", "p", At(0));
  timeline.BeginAttempt("d", "p", At(0));
  timeline.Moved(1, 100);
  timeline.Moved(2, 50);
  timeline.Trailed(2, milliseconds(8));
  timeline.Enter(Phase::kDecode, At(10));
  EXPECT_EQ(timeline.attempts()[0].kv_bytes, 100u);
  EXPECT_EQ(timeline.attempts()[1].tail, milliseconds(8));
  EXPECT_EQ(timeline.Timings(At(20)).kv_bytes(), 150u);
  EXPECT_DOUBLE_EQ(timeline.Timings(At(20)).transfer_ms(), 8);
  EXPECT_DOUBLE_EQ(timeline.Timings(At(13)).transfer_ms(), 3) << "inside decode";
}

// A request may be preempted and moved as often as it makes progress.
TEST(Timeline, KeepsTheFirstAttemptsAndCountsAll) {
  Timeline timeline(kArrival);
  for (size_t i = 0; i < 2 * Timeline::kMaxAttempts; ++i) {
    const uint32_t attempt = timeline.BeginAttempt("d", "p", At(0));
    timeline.Moved(attempt, 1);
    timeline.Trailed(attempt, milliseconds(1));
    timeline.EndAttempt(attempt, absl::OkStatus(), At(1));
  }
  EXPECT_EQ(timeline.attempts().size(), Timeline::kMaxAttempts);
  timeline.Enter(Phase::kDecode, At(1));
  const setu::v1::Timings timings = timeline.Timings(At(1000));
  EXPECT_EQ(timings.attempts(), 2 * Timeline::kMaxAttempts);
  EXPECT_EQ(timings.kv_bytes(), 2 * Timeline::kMaxAttempts);
  EXPECT_DOUBLE_EQ(timings.transfer_ms(), 2 * Timeline::kMaxAttempts);
}

}  // namespace
}  // namespace setu::router
