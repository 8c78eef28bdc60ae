// SPDX-License-Identifier: Apache-2.0
#include "common/worker/busy_time.h"

#include "common/base/check.h"

namespace setu::worker {
namespace {

bool Runs(int64_t state) { return state & 1; }

}  // namespace

void BusyTime::Begin() {
  SETU_CHECK(!Runs(state_), "one step at a time");
  began_ = clock_.Now();
  state_ = 2 * (ended_ - began_.time_since_epoch()).count() + 1;
}

Duration BusyTime::End() {
  SETU_CHECK(Runs(state_), "a step ends after it began");
  const Duration took = clock_.Now() - began_;
  ended_ += took;
  state_ = 2 * ended_.count();
  return took;
}

BusyTime::Reading BusyTime::Read() const {
  while (true) {
    const int64_t state = state_;
    const TimePoint now = clock_.Now();
    if (state_ != state) continue;  // else a step that just began or ended would count wrongly
    const Duration part(state >> 1);
    return {now, Runs(state) ? now.time_since_epoch() + part : part};
  }
}

}  // namespace setu::worker
