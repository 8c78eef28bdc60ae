// SPDX-License-Identifier: Apache-2.0
// Time inside steps, the running one included: whoever looks in the middle of a long step sees
// what has passed of it, so that between two looks no more is busy than went by.
//
//   BusyTime busy(clock);
//   busy.Begin();  ...a step...  const Duration took = busy.End();     // the step's thread
//   const auto [at, total] = busy.Read();                              // any thread
#ifndef SETU_COMMON_WORKER_BUSY_TIME_H_
#define SETU_COMMON_WORKER_BUSY_TIME_H_

#include <mutex>
#include <optional>

#include "common/base/clock.h"

namespace setu::worker {

class BusyTime {
 public:
  struct Reading {
    TimePoint at;
    Duration busy;  // until then; never decreases
  };

  explicit BusyTime(const Clock& clock) : clock_(clock) {}

  void Begin();
  Duration End();  // since Begin
  Reading Read() const;

 private:
  const Clock& clock_;
  // Held for two reads and a write; the clock is read under it, so that readings are in order.
  mutable std::mutex mutex_;
  std::optional<TimePoint> began_;  // the running step
  Duration ended_{};                // all before it
};

}  // namespace setu::worker

#endif  // SETU_COMMON_WORKER_BUSY_TIME_H_
