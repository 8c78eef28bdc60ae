// SPDX-License-Identifier: Apache-2.0
// What the log hears of overload: a line when the router begins to refuse for lack of room and one
// when it has not done so for kQuiet, however many it refuses. On the loop's thread.
//
//   OverloadLog overload(loop, logger);
//   overload.Refused("the queue is full");    // at each refusal
#ifndef SETU_SERVICES_ROUTER_OVERLOAD_LOG_H_
#define SETU_SERVICES_ROUTER_OVERLOAD_LOG_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "common/logging/logger.h"
#include "common/rpc/event_loop.h"

namespace setu::router {

class OverloadLog {
 public:
  static constexpr Duration kQuiet = std::chrono::seconds(10);

  // Both must outlive it.
  OverloadLog(rpc::EventLoop& loop, Logger& logger) : loop_(loop), logger_(logger) {}
  ~OverloadLog();

  void Refused(absl::string_view why);

 private:
  void LookAt(TimePoint when);

  rpc::EventLoop& loop_;
  Logger& logger_;
  uint64_t refused_ = 0;  // since it began
  TimePoint began_;
  TimePoint last_;
  std::optional<rpc::EventLoop::Timer> look_;  // while it lasts
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_OVERLOAD_LOG_H_
