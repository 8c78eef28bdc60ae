// SPDX-License-Identifier: Apache-2.0
// A clock whose hands a test turns. Any thread.
#ifndef SETU_TESTS_SUPPORT_FAKE_CLOCK_H_
#define SETU_TESTS_SUPPORT_FAKE_CLOCK_H_

#include <atomic>

#include "common/base/clock.h"

namespace setu::testing {

class FakeClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(Duration(now_.load())); }
  void Advance(Duration by) { now_ += by.count(); }

 private:
  std::atomic<Duration::rep> now_{1'000'000'000'000};
};

}  // namespace setu::testing

#endif  // SETU_TESTS_SUPPORT_FAKE_CLOCK_H_
