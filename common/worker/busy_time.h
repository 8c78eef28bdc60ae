// SPDX-License-Identifier: Apache-2.0
// Time inside steps, the running one included: whoever looks in the middle of a long step sees
// what has passed of it, so that between two looks no more is busy than went by.
//
//   BusyTime busy(clock);
//   busy.Begin();  ...a step...  const Duration took = busy.End();     // the step's thread
//   const auto [at, total] = busy.Read();                              // any thread
#ifndef SETU_COMMON_WORKER_BUSY_TIME_H_
#define SETU_COMMON_WORKER_BUSY_TIME_H_

#include <atomic>
#include <cstdint>

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
  TimePoint began_{};  // the running step; the step's thread only
  Duration ended_{};   // all before it; the step's thread only
  // One word, so that neither side ever waits: twice `ended_`, or while a step runs twice the
  // (negative) time that added to now makes the busy time, plus one.
  std::atomic<int64_t> state_{0};
};

}  // namespace setu::worker

#endif  // SETU_COMMON_WORKER_BUSY_TIME_H_
