// SPDX-License-Identifier: Apache-2.0
// Seconds as a number, and of a call.
//
//   const double seconds = SecondsOf([&] { runner.Step(entries); });
#ifndef SETU_COMMON_ROOFLINE_TIMING_H_
#define SETU_COMMON_ROOFLINE_TIMING_H_

#include <algorithm>

#include "common/base/clock.h"

namespace setu::roofline {

inline double Seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

// What one call takes; never 0.
double SecondsOf(const auto& call) {
  const SteadyClock clock;
  const TimePoint begin = clock.Now();
  call();
  return std::max(Seconds(clock.Now() - begin), 1e-9);
}

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_TIMING_H_
