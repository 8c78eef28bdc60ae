// SPDX-License-Identifier: Apache-2.0
#include "services/router/drain_rate.h"

#include <gtest/gtest.h>

namespace setu::router {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class DrainRateTest : public ::testing::Test {
 protected:
  // Somebody waits for `length`, and one leaves at the end of each `pace`.
  void Drain(Duration length, Duration pace) {
    for (Duration done{0}; done < length; done += pace) {
      now_ += pace;
      rate_.Looked(now_, 1, 100);
    }
  }
  void BeginToWait() { rate_.Looked(now_, 0, 100); }
  double SecondsBehind(size_t ahead) {
    return std::chrono::duration<double>(rate_.RetryAfter(now_, ahead)).count();
  }

  TimePoint now_{hours(1)};
  DrainRate rate_;
};

TEST_F(DrainRateTest, WhereNothingIsKnownItIsTheShortest) {
  EXPECT_EQ(rate_.RetryAfter(now_, 256), DrainRate::kShortest);
  BeginToWait();
  EXPECT_EQ(rate_.RetryAfter(now_, 256), DrainRate::kShortest);
}

TEST_F(DrainRateTest, FollowsTheRate) {
  BeginToWait();
  Drain(minutes(1), seconds(1));
  EXPECT_NEAR(SecondsBehind(0), 1, 0.06);
  EXPECT_NEAR(SecondsBehind(9), 10, 0.6);
  Drain(minutes(1), milliseconds(200));
  EXPECT_NEAR(SecondsBehind(9), 2, 0.12);
  Drain(minutes(1), milliseconds(1500));
  EXPECT_NEAR(SecondsBehind(9), 15, 1.5);
}

TEST_F(DrainRateTest, LooksThatFindNothingNewChangeNothing) {
  BeginToWait();
  for (int i = 0; i < 60 * 50; ++i) {
    now_ += milliseconds(20);
    rate_.Looked(now_, i % 50 == 49 ? 1 : 0, 100);
  }
  EXPECT_NEAR(SecondsBehind(9), 10, 0.6);
}

TEST_F(DrainRateTest, SeveralThatLeaveAtOnceCountEach) {
  BeginToWait();
  for (int i = 0; i < 30; ++i) {
    now_ += seconds(2);
    rate_.Looked(now_, 16, 100);
  }
  EXPECT_NEAR(SecondsBehind(255), 32, 4);
  EXPECT_NEAR(SecondsBehind(79), 10, 1.5);
}

TEST_F(DrainRateTest, WhatMeetsFreeRoomSaysNothing) {
  for (int i = 0; i < 10'000; ++i) rate_.Looked(now_ += milliseconds(1), 1, 0);
  EXPECT_EQ(rate_.RetryAfter(now_, 256), DrainRate::kShortest);
  BeginToWait();
  Drain(seconds(5), seconds(1));
  EXPECT_NEAR(SecondsBehind(9), 10, 1) << "the many before are no drain";
}

TEST_F(DrainRateTest, ATimeWithoutAQueueIsNoSlowDrain) {
  BeginToWait();
  Drain(minutes(1), milliseconds(500));
  rate_.Looked(now_, 1, 0);
  rate_.Looked(now_ += seconds(10), 0, 0);
  EXPECT_NEAR(SecondsBehind(9), 5, 0.6);
}

TEST_F(DrainRateTest, AnHourLaterNothingIsKnown) {
  BeginToWait();
  Drain(minutes(1), seconds(1));
  rate_.Looked(now_, 1, 0);
  now_ += hours(1);
  BeginToWait();
  EXPECT_EQ(rate_.RetryAfter(now_, 256), DrainRate::kShortest);
}

TEST_F(DrainRateTest, WhileNobodyLeavesItGrowsToTheLongest) {
  BeginToWait();
  Drain(minutes(1), milliseconds(10));
  Duration before = rate_.RetryAfter(now_, 0);
  EXPECT_EQ(before, DrainRate::kShortest);
  for (int i = 0; i < 30; ++i) {
    now_ += seconds(1);
    rate_.Looked(now_, 0, 100);
    EXPECT_GT(rate_.RetryAfter(now_, 0), before);
    before = rate_.RetryAfter(now_, 0);
  }
  EXPECT_EQ(before, DrainRate::kLongest);
  now_ += hours(100);
  rate_.Looked(now_, 0, 100);
  EXPECT_EQ(rate_.RetryAfter(now_, 1'000'000), DrainRate::kLongest);
}

TEST_F(DrainRateTest, TheLongestWaitLeavesAReserveForUnevenTurns) {
  EXPECT_EQ(rate_.LongestWait(0), std::nullopt);
  BeginToWait();
  EXPECT_EQ(rate_.LongestWait(0), std::nullopt) << "nobody has left yet";
  Drain(minutes(1), milliseconds(750));
  const double longest = std::chrono::duration<double>(*rate_.LongestWait(9)).count();
  EXPECT_NEAR(longest, 10, 0.6);
  EXPECT_NEAR(longest * DrainRate::kSteady, SecondsBehind(9), 1e-6);
  rate_.Looked(now_, 1, 0);
  EXPECT_EQ(rate_.LongestWait(9), std::nullopt) << "nobody waits";
}

TEST_F(DrainRateTest, StaysWithinItsBounds) {
  BeginToWait();
  Drain(minutes(1), milliseconds(1));
  EXPECT_EQ(rate_.RetryAfter(now_, 0), DrainRate::kShortest);
  EXPECT_EQ(rate_.RetryAfter(now_, 1'000'000), DrainRate::kLongest);
}

}  // namespace
}  // namespace setu::router
