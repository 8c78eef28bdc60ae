// SPDX-License-Identifier: Apache-2.0
// The life of a worker's process once its worker is made, from its servers to its drain.
//
//   SETU_ASSIGN_OR_RETURN(rpc::Listener listener, flags.TakePorts());
//   decode::Worker worker(...);
//   return worker::Serve(worker, "decode", flags, std::move(listener), signals, logger);
//
// Worker is prefill::Worker or decode::Worker: services(), snapshot(), BeginDrain() and so on, with
// Report and FiguresLine of its snapshot found beside it.
#ifndef SETU_COMMON_WORKER_SERVE_H_
#define SETU_COMMON_WORKER_SERVE_H_

#include <chrono>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/base/stop_signals.h"
#include "common/logging/logger.h"
#include "common/metrics/exposer.h"
#include "common/rpc/server.h"
#include "common/worker/worker_flags.h"

namespace setu::worker {

// Until a stop signal or a Drain call; then waits for what runs, `drain_grace` at most or until a
// further signal. UNAVAILABLE names an address that cannot be bound.
template <typename Worker>
absl::Status Serve(Worker& worker, const char* role, const WorkerFlags& flags,
                   rpc::Listener listener, StopSignals& signals, Logger& logger) {
  constexpr std::chrono::seconds kFiguresEvery(5);
  constexpr std::chrono::milliseconds kLookAgain(100);
  const auto report = [&](metrics::Scrape& scrape) {
    Report(worker.snapshot(), logger.dropped(), scrape);
  };
  SETU_ASSIGN_OR_RETURN(
      const auto exposer,
      metrics::Exposer::Start(flags.metrics_listen, worker.model_name(), role, report));
  SETU_ASSIGN_OR_RETURN(const auto server, rpc::Server::Start(flags.server(), worker.services(),
                                                              std::move(listener), logger));
  server->SetServing(true);
  logger.Info(absl::StrCat(worker.capacity_line(), "; metrics at ", exposer->url()));
  auto before = worker.snapshot();
  while (!signals.WaitFor(kFiguresEvery)) {
    const auto now = worker.snapshot();
    if (const auto figures = FiguresLine(before, now)) logger.Info(*figures);
    if (now.draining) break;
    before = now;
  }
  server->SetServing(false);
  worker.BeginDrain();
  const SteadyClock clock;
  const TimePoint deadline = clock.Now() + flags.drain_grace;
  while (!worker.WaitDrained(kLookAgain)) {
    if (clock.Now() < deadline && !signals.WaitFor(Duration::zero())) continue;
    logger.Warning("not drained; what still runs ends now");
    break;
  }
  worker.Stop();
  server->Shutdown(std::chrono::seconds(1));
  return absl::OkStatus();
}

}  // namespace setu::worker

#endif  // SETU_COMMON_WORKER_SERVE_H_
