// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace setu::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Workload With(ArrivalProcess arrivals, int64_t requests = 1000, Duration duration = seconds(10)) {
  Workload workload = *MakeWorkload("w", {});
  workload.arrivals = std::move(arrivals);
  workload.requests = requests;
  workload.duration = duration;
  return workload;
}

// How many may start at `now` with so many under way.
int Started(Pace& pace, Duration now, int64_t open) {
  int started = 0;
  while (pace.Due(now, open + started)) ++started;
  return started;
}

TEST(Pace, OfAClosedLoopKeepsItsClientsBusy) {
  const Workload workload = With(Closed{3});
  Pace pace(workload, 1);
  EXPECT_EQ(Started(pace, seconds(0), 0), 3);
  EXPECT_EQ(Started(pace, seconds(1), 3), 0);
  EXPECT_EQ(Started(pace, seconds(2), 1), 2);
  EXPECT_FALSE(pace.Next());
}

TEST(Pace, OfALockstepWaitsForTheLastOfItsBatch) {
  const Workload workload = With(Lockstep{3});
  Pace pace(workload, 1);
  EXPECT_EQ(Started(pace, seconds(0), 0), 3);
  EXPECT_EQ(Started(pace, seconds(1), 1), 0);
  EXPECT_EQ(Started(pace, seconds(2), 0), 3);
}

TEST(Pace, OfOpenArrivalsWaitsForNoAnswer) {
  const Workload workload = With(Fixed{10});
  Pace pace(workload, 1);
  EXPECT_EQ(pace.Due(seconds(0), 0), seconds(0));
  EXPECT_EQ(pace.Due(milliseconds(99), 1), std::nullopt);
  EXPECT_EQ(pace.Next(), milliseconds(100));
  // A generator that was held up starts what it missed, each from its own time.
  EXPECT_EQ(pace.Due(milliseconds(350), 1'000'000), milliseconds(100));
  EXPECT_EQ(pace.Due(milliseconds(350), 1'000'000), milliseconds(200));
  EXPECT_EQ(pace.Due(milliseconds(350), 1'000'000), milliseconds(300));
  EXPECT_EQ(pace.Due(milliseconds(350), 1'000'000), std::nullopt);
}

TEST(Pace, IsOverAfterItsRequests) {
  for (const ArrivalProcess& arrivals :
       {ArrivalProcess(Closed{3}), ArrivalProcess(Lockstep{3}), ArrivalProcess(Fixed{1000})}) {
    const Workload workload = With(arrivals, 5);
    Pace pace(workload, 1);
    int started = 0;
    for (int tick = 0; !pace.Over(milliseconds(tick)); ++tick) {
      started += Started(pace, milliseconds(tick), 0);
    }
    EXPECT_EQ(started, 5);
  }
}

TEST(Pace, StartsNothingAfterItsDuration) {
  const Workload closed = With(Closed{3});
  Pace pace(closed, 1);
  EXPECT_FALSE(pace.Over(seconds(10) - milliseconds(1)));
  EXPECT_TRUE(pace.Over(seconds(10)));
  EXPECT_EQ(Started(pace, seconds(10), 0), 0);

  // Also where time has passed unseen, every arrival before it is started.
  const Workload open = With(Fixed{1});
  Pace late(open, 1);
  EXPECT_EQ(Started(late, seconds(100), 0), 10);
  EXPECT_TRUE(late.Over(seconds(0)));
}

}  // namespace
}  // namespace setu::cli
