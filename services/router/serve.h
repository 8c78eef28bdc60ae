// SPDX-License-Identifier: Apache-2.0
// A router's process: what it is told by flags, and its life from its servers to its drain.
#ifndef SETU_SERVICES_ROUTER_SERVE_H_
#define SETU_SERVICES_ROUTER_SERVE_H_

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/stop_signals.h"
#include "common/config/options.h"
#include "common/logging/logger.h"
#include "common/rpc/server.h"
#include "services/router/router.h"

namespace setu::router {

struct RouterFlags {
  std::string model;
  std::string listen = "127.0.0.1:50051";
  std::string metrics_listen = "127.0.0.1:9464";
  Duration drain_grace = std::chrono::seconds(60);
  int32_t queue = 256;
  std::optional<std::string> auth_tokens;
  std::optional<std::string> cluster_secret;
  std::string otlp_endpoint;  // empty: no traces
  rpc::ServerOptions server;
  RouterOptions router;

  void AddTo(config::Options& options);
};

// Until a stop signal; then waits for what runs, `drain_grace` at most or until a further signal.
// An error names the file or address that is to blame.
absl::Status Serve(RouterFlags flags, StopSignals& signals, Logger& logger);

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_SERVE_H_
