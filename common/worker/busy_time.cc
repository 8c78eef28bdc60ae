// SPDX-License-Identifier: Apache-2.0
#include "common/worker/busy_time.h"

#include "common/base/check.h"

namespace setu::worker {

void BusyTime::Begin() {
  const std::lock_guard lock(mutex_);
  SETU_CHECK(!began_, "one step at a time");
  began_ = clock_.Now();
}

Duration BusyTime::End() {
  const std::lock_guard lock(mutex_);
  SETU_CHECK(began_.has_value(), "a step ends after it began");
  const Duration took = clock_.Now() - *began_;
  began_.reset();
  ended_ += took;
  return took;
}

BusyTime::Reading BusyTime::Read() const {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  return {now, began_ ? ended_ + (now - *began_) : ended_};
}

}  // namespace setu::worker
