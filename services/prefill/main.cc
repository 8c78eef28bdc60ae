// SPDX-License-Identifier: Apache-2.0
// setu-prefill: a prefill worker as a process.
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/stop_signals.h"
#include "common/config/program.h"
#include "common/kv_transfer/sender.h"
#include "common/rpc/grpc_log.h"
#include "common/worker/serve.h"
#include "common/worker/worker_flags.h"
#include "services/prefill/metrics.h"
#include "services/prefill/worker.h"

namespace setu::prefill {

absl::Status Serve(const worker::WorkerFlags& flags, const WorkerOptions& options, int64_t kv_shm,
                   StopSignals& signals, Logger& logger) {
  SETU_ASSIGN_OR_RETURN(rpc::Listener listener, flags.TakePorts());
  SETU_ASSIGN_OR_RETURN(auto runner,
                        flags.LoadModel({.max_rows = options.loop.chunk_tokens}, logger));
  SETU_ASSIGN_OR_RETURN(auto staging,
                        kv_transfer::SharedStaging::Create(
                            kv_shm, kv_transfer::SlotBytes(runner->storage().layout())));
  const SteadyClock clock;
  const auto channels = rpc::MakeTcpChannelFactory();
  Worker worker(options, std::move(runner), std::move(staging), *channels, clock, logger);
  return worker::Serve(worker, "prefill", flags, std::move(listener), signals, logger);
}

}  // namespace setu::prefill

int main(int argc, char** argv) {
  setu::StopSignals signals;
  setu::StderrLogger logger("prefill");
  const setu::rpc::GrpcLog grpc_log(logger);
  setu::worker::WorkerFlags flags{.listen = "127.0.0.1:50052", .metrics_listen = "127.0.0.1:9465"};
  setu::prefill::WorkerOptions options;
  int64_t kv_shm = 32 << 20;
  setu::config::Options declared(
      "setu-prefill", "Computes prompts for a Setu cluster.",
      {"setu-prefill --model m.gguf",
       "setu-prefill --model m.gguf --listen [::]:50052 "
       "--threads 8 --kv-memory 16GiB",
       "SETU_MODEL=m.gguf setu-prefill --config prefill.yaml --chunk-tokens 256"});
  flags.AddTo(declared);
  declared.Add("chunk-tokens", &options.loop.chunk_tokens, "tokens of one step").Range(16, 8192);
  declared.Add("queue", &options.loop.queue, "prompts that may wait").Range(1, 4096);
  declared.Add("prefix-cache", &options.loop.prefix_cache,
               "keep the KV of prompts for those that start alike");
  declared.AddBytes(
      "kv-shm", &kv_shm,
      "memory through which KV goes to decode workers on this host; 0: by gRPC alone");
  return setu::config::RunProgram(declared, argc, argv, logger,
                                  [&] { return Serve(flags, options, kv_shm, signals, logger); });
}
