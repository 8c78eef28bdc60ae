// SPDX-License-Identifier: Apache-2.0
// Keeps one address in sight: Describe, then WatchLoad, and again after every loss with a back-off
// that keeps a worker that comes back unused for less than five seconds.
//
//   WorkerClient watch(loop, calls, "10.0.0.7:50053", std::chrono::seconds(3),
//                      {.seen = [&](const auto& description, const auto& load) {...},
//                       .lost = [&](const absl::Status& why) {...}});
#ifndef SETU_SERVICES_ROUTER_WORKER_CLIENT_H_
#define SETU_SERVICES_ROUTER_WORKER_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/rpc/event_loop.h"
#include "services/router/worker_calls.h"
#include "setu/worker/v1/worker.pb.h"

namespace setu::router {

// Both run on the loop's thread and must not destroy the WorkerClient.
struct WorkerSight {
  // With each report. False: reports are missing, and the stream starts anew.
  std::function<bool(const worker::v1::DescribeResponse&, const worker::v1::WatchLoadResponse&)>
      seen;
  // No answer, or no more reports: once per failed try.
  std::function<void(const absl::Status&)> lost;
};

class WorkerClient {
 public:
  // On the loop's thread, as its end. A worker without a report for `report_timeout` is lost.
  WorkerClient(rpc::EventLoop& loop, WorkerCalls& calls, const std::string& address,
               Duration report_timeout, WorkerSight sight);
  ~WorkerClient();

 private:
  struct Watch;
  std::shared_ptr<Watch> watch_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_WORKER_CLIENT_H_
