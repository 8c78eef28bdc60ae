// SPDX-License-Identifier: Apache-2.0
// SIGTERM and SIGINT as a wait instead of an interruption. Made in main before any other thread, so
// that all threads inherit the blocked signals and none is interrupted.
//
//   StopSignals signals;
//   while (!signals.WaitFor(std::chrono::seconds(5))) LogFigures();
#ifndef SETU_COMMON_BASE_STOP_SIGNALS_H_
#define SETU_COMMON_BASE_STOP_SIGNALS_H_

#include "common/base/clock.h"

namespace setu {

class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  // Whether one arrived within `timeout`; each is told once.
  bool WaitFor(Duration timeout);
};

}  // namespace setu

#endif  // SETU_COMMON_BASE_STOP_SIGNALS_H_
