// SPDX-License-Identifier: Apache-2.0
// Monotonic time behind an interface, so that tests turn the hands themselves.
#ifndef SETU_COMMON_BASE_CLOCK_H_
#define SETU_COMMON_BASE_CLOCK_H_

#include <chrono>

namespace setu {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
};

inline double Milliseconds(Duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

}  // namespace setu

#endif  // SETU_COMMON_BASE_CLOCK_H_
