// SPDX-License-Identifier: Apache-2.0
// setu-decode: a decode worker as a process.
#include <algorithm>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/stop_signals.h"
#include "common/config/program.h"
#include "common/rpc/grpc_log.h"
#include "common/worker/serve.h"
#include "common/worker/worker_flags.h"
#include "services/decode/flags.h"
#include "services/decode/metrics.h"
#include "services/decode/worker.h"

namespace setu::decode {

absl::Status Serve(const worker::WorkerFlags& flags, const WorkerOptions& options,
                   StopSignals& signals, Logger& logger) {
  SETU_ASSIGN_OR_RETURN(rpc::Listener listener, flags.TakePorts());
  SETU_ASSIGN_OR_RETURN(
      auto runner,
      flags.LoadModel({.max_rows = std::max(options.max_running, 64) + options.chunk_tokens,
                       .max_logits = options.max_running},
                      logger));
  const SteadyClock clock;
  Worker worker(options, std::move(runner), clock, logger);
  return worker::Serve(worker, "decode", flags, std::move(listener), signals, logger);
}

}  // namespace setu::decode

int main(int argc, char** argv) {
  setu::StopSignals signals;
  setu::StderrLogger logger("decode");
  const setu::rpc::GrpcLog grpc_log(logger);
  setu::worker::WorkerFlags flags{.listen = "127.0.0.1:50053",
                                  .metrics_listen = "127.0.0.1:9466",
                                  .max_message_bytes = 64 << 20};
  setu::decode::WorkerOptions options;
  setu::config::Options declared(
      "setu-decode", "Writes the answers of a Setu cluster.",
      {"setu-decode --model m.gguf",
       "setu-decode --model m.gguf --listen [::]:50053 "
       "--threads 8 --kv-memory 16GiB",
       "SETU_MODEL=m.gguf setu-decode --config decode.yaml --max-running 32"});
  flags.AddTo(declared);
  AddTo(declared, options);
  return setu::config::RunProgram(declared, argc, argv, logger,
                                  [&] { return Serve(flags, options, signals, logger); });
}
