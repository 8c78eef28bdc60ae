// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/kernel_timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace setu::roofline {
namespace {

// Answers these one after another, and the last one again and again.
auto Runs(std::vector<double> seconds, int& count) {
  return [seconds, &count] { return seconds[std::min<size_t>(count++, seconds.size() - 1)]; };
}

TEST(KernelTiming, TheFirstOfTheRunsThatAreExpectedDoesNotCount) {
  int count = 0;
  EXPECT_EQ(Median(Runs({9e-3, 1e-3, 5e-3, 2e-3, 4e-3, 3e-3}, count)), 3e-3);
  EXPECT_EQ(count, 1 + kRuns);
}

TEST(KernelTiming, ALongRunIsMadeOnceAfterTheFirst) {
  int count = 0;
  EXPECT_EQ(Median(Runs({2 * kLongRuns, kLongRuns}, count)), kLongRuns);
  EXPECT_EQ(count, 2);
}

TEST(KernelTiming, TheFastestRunMayBeTheSecond) {
  int count = 0;
  EXPECT_EQ(Fastest(Runs({2 * kFastRun, kFastRun}, count)), kFastRun);
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace setu::roofline
