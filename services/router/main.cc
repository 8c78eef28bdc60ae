// SPDX-License-Identifier: Apache-2.0
// setu-router: the public side of a cluster as a process.
#include "common/config/program.h"
#include "common/rpc/grpc_log.h"
#include "services/router/serve.h"

int main(int argc, char** argv) {
  setu::StopSignals signals;
  setu::StderrLogger logger("router");
  const setu::rpc::GrpcLog grpc_log(logger);
  setu::router::RouterFlags flags;
  setu::config::Options declared("setu-router", "Serves a Setu cluster's public API.",
                                 {"setu-router --model m.gguf --prefill 127.0.0.1:50052 "
                                  "--decode 127.0.0.1:50053",
                                  "setu-router --model m.gguf --listen [::]:50051 "
                                  "--prefill prefill:50052 --decode decode:50053",
                                  "SETU_MODEL=m.gguf setu-router --config router.yaml --queue 64"});
  flags.AddTo(declared);
  return setu::config::RunProgram(declared, argc, argv, logger,
                                  [&] { return setu::router::Serve(flags, signals, logger); });
}
