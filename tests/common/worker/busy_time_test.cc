// SPDX-License-Identifier: Apache-2.0
#include "common/worker/busy_time.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace setu::worker {
namespace {

using std::chrono::seconds;

// A step of 21 s and looks every 5 s: each window is busy for as long as it is, and no longer.
TEST(BusyTime, ALongStepCountsInEachWindowThatItSpans) {
  testing::FakeClock clock;
  BusyTime busy(clock);
  clock.Advance(seconds(4));
  busy.Begin();
  BusyTime::Reading before = {clock.Now() - seconds(4), Duration::zero()};
  for (const int expected : {1, 5, 5, 5}) {
    clock.Advance(seconds(before.busy == Duration::zero() ? 1 : 5));
    const BusyTime::Reading now = busy.Read();
    EXPECT_EQ(now.busy - before.busy, seconds(expected));
    EXPECT_EQ(now.at - before.at, seconds(5));
    before = now;
  }
  clock.Advance(seconds(5));
  EXPECT_EQ(busy.End(), seconds(21));
  EXPECT_EQ(busy.Read().busy, seconds(21));
}

TEST(BusyTime, NothingIsBusyBetweenSteps) {
  testing::FakeClock clock;
  BusyTime busy(clock);
  busy.Begin();
  clock.Advance(seconds(2));
  EXPECT_EQ(busy.End(), seconds(2));
  clock.Advance(seconds(60));
  EXPECT_EQ(busy.Read().busy, seconds(2));
  busy.Begin();
  clock.Advance(seconds(1));
  EXPECT_EQ(busy.Read().busy, seconds(3));
}

}  // namespace
}  // namespace setu::worker
