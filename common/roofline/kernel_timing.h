// SPDX-License-Identifier: Apache-2.0
// How often a kernel is timed, with what, and which run counts.
//
//   const double least = Fastest([&] { return SecondsOf(call); });
#ifndef SETU_COMMON_ROOFLINE_KERNEL_TIMING_H_
#define SETU_COMMON_ROOFLINE_KERNEL_TIMING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "common/roofline/kernel_rates.h"

namespace setu::roofline {

inline constexpr int kFastRuns = 4;          // the fastest counts; the first fills the caches
inline constexpr double kFastRun = 5e-3;     // seconds; in all, after which nothing is repeated
inline constexpr int kRuns = 5;              // the median counts
inline constexpr double kLongRuns = 20e-3;   // seconds; in all, after which nothing is repeated
inline constexpr double kLongestRun = 0.15;  // seconds, expected; longer ones are not tried
inline constexpr double kLeast = 1e-9;       // seconds of what is too short to be seen

inline std::vector<float> RandomRows(int64_t values) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> out(values);
  for (float& value : out) value = uniform(engine);
  return out;
}

// What the machine can do: `run` answers what it took.
double Fastest(const auto& run) {
  double fastest = run();
  double passed = fastest;
  for (int i = 1; i < 2 || (i < kFastRuns && passed < kFastRun); ++i) {
    const double seconds = run();
    fastest = std::min(fastest, seconds);
    passed += seconds;
  }
  return fastest;
}

// What is to be expected of it. The first run does not count: it may be the first to touch its
// memory, and a host takes as long to give that as a long run takes.
double Median(const auto& run) {
  run();
  std::vector<double> seconds;
  double passed = 0;
  do {
    seconds.push_back(run());
    passed += seconds.back();
  } while (std::ssize(seconds) < kRuns && passed < kLongRuns);
  const auto middle = seconds.begin() + (std::ssize(seconds) - 1) / 2;
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

// Seconds of each of the timed rows: measured, or where that would take too long or is more than
// `most_rows`, as `growth` has it from the rows before.
SecondsByRows TimeRows(int64_t most_rows, const auto& growth, const auto& time) {
  SecondsByRows seconds{};
  for (size_t i = 0; i < kTimedRows.size(); ++i) {
    const double expected = i == 0 ? 0.0 : seconds[i - 1] * growth(i);
    const bool tried = i == 0 || (expected < kLongestRun && kTimedRows[i] <= most_rows);
    seconds[i] = tried ? time(kTimedRows[i]) : expected;
  }
  return seconds;
}

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_KERNEL_TIMING_H_
