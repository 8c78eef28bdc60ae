// SPDX-License-Identifier: Apache-2.0
// A decode worker without its server: the loop's thread and the services that feed it.
//
//   Worker worker({}, std::move(runner), clock, logger);
//   auto server = rpc::Server::Start({}, worker.services(), std::move(listener), logger);
//   worker.BeginDrain();
//   worker.WaitDrained(std::chrono::seconds(60));
//   worker.Stop();
//   server->Shutdown(grace);            // before the worker dies
#ifndef SETU_SERVICES_DECODE_WORKER_H_
#define SETU_SERVICES_DECODE_WORKER_H_

#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/engine/model_runner.h"
#include "common/logging/logger.h"
#include "services/decode/options.h"
#include "services/decode/snapshot.h"

namespace grpc {
class Service;
}

namespace setu::decode {

class Worker {
 public:
  // `clock` and `logger` must outlive the worker.
  Worker(const WorkerOptions& options, std::unique_ptr<engine::ModelRunner> runner,
         const Clock& clock, Logger& logger);
  // The server must be gone.
  ~Worker();

  // DecodeService, KvTransferService, WorkerService.
  std::vector<grpc::Service*> services();
  std::string model_name() const;

  // Any thread: refuses new requests and tells the routers; what runs goes on.
  void BeginDrain();
  // Whether everything had ended within `limit`.
  bool WaitDrained(Duration limit);
  // Ends every stream UNAVAILABLE, and every watch; the server's Shutdown waits for that.
  void Stop();

  Snapshot snapshot() const;
  // "256 blocks x 16 tokens = 4096 tokens, batch 64, grant 256 tokens, int8-g32/kv-f16/r1 on
  // avx512, 2 threads"
  std::string capacity_line() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_WORKER_H_
