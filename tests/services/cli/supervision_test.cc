// SPDX-License-Identifier: Apache-2.0
#include "services/cli/supervision.h"

#include <gtest/gtest.h>

namespace setu::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(DivideMachine, GivesEqualPartsAndAtLeastOneThread) {
  EXPECT_EQ(DivideMachine(8, int64_t{16} << 30, 2).threads, 4);
  EXPECT_EQ(DivideMachine(2, int64_t{16} << 30, 3).threads, 1);
}

TEST(DivideMachine, GivesEqualPartsOfTheKvMemory) {
  EXPECT_EQ(DivideMachine(2, int64_t{2} << 30, 2).kv_bytes, int64_t{1} << 30);
}

TEST(DefaultKvBytes, IsAQuarterOfTheMemoryAndAtMostFourGiBAWorker) {
  EXPECT_EQ(DefaultKvBytes(int64_t{8} << 30, 2), int64_t{2} << 30);
  EXPECT_EQ(DefaultKvBytes(int64_t{1} << 40, 2), int64_t{8} << 30);
}

TEST(RestartBackoff, DoublesUpToHalfAMinute) {
  RestartBackoff backoff;
  EXPECT_EQ(backoff.AfterDeath(seconds(0)), milliseconds(500));
  EXPECT_EQ(backoff.AfterDeath(seconds(0)), seconds(1));
  for (int i = 0; i < 10; ++i) backoff.AfterDeath(seconds(1));
  EXPECT_EQ(backoff.AfterDeath(seconds(1)), seconds(30));
}

TEST(RestartBackoff, ForgetsAfterAHealthyMinute) {
  RestartBackoff backoff;
  for (int i = 0; i < 10; ++i) backoff.AfterDeath(seconds(1));
  EXPECT_EQ(backoff.AfterDeath(minutes(2)), milliseconds(500));
}

}  // namespace
}  // namespace setu::cli
