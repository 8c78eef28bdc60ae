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

TEST(KvMemory, OfAllWorkersFitsBesideTheirWeights) {
  constexpr int64_t kMiB = 1 << 20;
  EXPECT_TRUE(CheckKvMemory(0, 100 * kMiB, 2, 100 * kMiB).ok()) << "nobody said how much";
  EXPECT_TRUE(CheckKvMemory(800 * kMiB, 100 * kMiB, 2, 1000 * kMiB).ok());
  EXPECT_EQ(CheckKvMemory(801 * kMiB, 100 * kMiB, 2, 1000 * kMiB).message(),
            "--kv-memory is 801MiB for all workers; it must be at most 800MiB: the memory limit is "
            "1000MiB, and the weights of 2 workers take 200MiB of it");
}

}  // namespace
}  // namespace setu::cli
