// SPDX-License-Identifier: Apache-2.0
// setu-router: the public side of a cluster as a process.
#include "services/router/serve.h"

int main(int argc, char** argv) {
  setu::StopSignals signals;
  setu::StderrLogger logger("router");
  setu::router::RouterFlags flags;
  setu::config::Options declared("setu-router", "Serves a Setu cluster's public API.",
                                 {"setu-router --model m.gguf --prefill 127.0.0.1:50052 "
                                  "--decode 127.0.0.1:50053"});
  flags.AddTo(declared);
  const auto outcome = declared.Parse(argc, argv, setu::config::ProcessEnvironment(), logger);
  if (outcome.ok() && *outcome == setu::config::Options::Outcome::kHelpShown) return 0;
  const absl::Status status =
      outcome.ok() ? setu::router::Serve(flags, signals, logger) : outcome.status();
  if (!status.ok()) logger.Error(std::string(status.message()));
  return status.ok() ? 0 : 1;
}
