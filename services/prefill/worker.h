// SPDX-License-Identifier: Apache-2.0
// A whole prefill worker without its server: the loop over a loaded model, and the services that
// the router calls.
//
//   Worker worker({}, std::move(runner), std::move(staging), *channels, clock, logger);
//   auto server = rpc::Server::Start(options, worker.services());
//   ...
//   worker.BeginDrain();
//   worker.WaitDrained(grace);
//   worker.Stop();                 // then the server's Shutdown, which now has nothing to wait for
#ifndef SETU_SERVICES_PREFILL_WORKER_H_
#define SETU_SERVICES_PREFILL_WORKER_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/engine/model_runner.h"
#include "common/kv_transfer/shared_staging.h"
#include "common/logging/logger.h"
#include "common/rpc/channel_factory.h"
#include "common/worker/worker_service.h"
#include "services/prefill/loop.h"
#include "services/prefill/prefill_service.h"
#include "services/prefill/snapshot.h"

namespace setu::prefill {

struct WorkerOptions {
  LoopOptions loop;
  std::string incarnation;  // empty: random
};

class Worker {
 public:
  // `channels`, `clock` and `logger` must outlive the worker, the worker its server. Without
  // `staging`, null, KV goes by gRPC alone.
  Worker(const WorkerOptions& options, std::unique_ptr<engine::ModelRunner> runner,
         std::unique_ptr<kv_transfer::SharedStaging> staging, rpc::ChannelFactory& channels,
         const Clock& clock, Logger& logger);
  ~Worker();  // stops

  std::vector<grpc::Service*> services() { return {&prefill_service_, &worker_service_}; }
  void BeginDrain();
  bool WaitDrained(Duration timeout) { return loop_.WaitDrained(timeout); }
  // What still runs ends UNAVAILABLE; load watches end.
  void Stop();
  Snapshot snapshot() const;
  const std::string& model_name() const { return runner_->config().name; }
  // "256 blocks x 16 tokens = 4096 tokens, chunk 512, queue 16, 32 MiB shared for KV,
  // int8-g32/kv-f16/r1 on avx512, 2 threads"
  std::string capacity_line() const;

 private:
  void Run();

  const WorkerOptions options_;
  const std::unique_ptr<engine::ModelRunner> runner_;
  const std::unique_ptr<kv_transfer::SharedStaging> staging_;
  Logger& logger_;
  worker::WorkerService worker_service_;
  roofline::IdleProbe probe_;
  Loop loop_;
  PrefillService prefill_service_;
  std::thread thread_;  // last: runs while all else is there
};

}  // namespace setu::prefill

#endif  // SETU_SERVICES_PREFILL_WORKER_H_
