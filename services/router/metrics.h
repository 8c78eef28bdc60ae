// SPDX-License-Identifier: Apache-2.0
// What the router's clients see, counted, and all of the router as samples of the metrics
// catalogue.
//
//   ClientFigures figures;                       // outlives the router
//   Router router(..., figures);
//   Report(router.snapshot(), figures.snapshot(), callers->figures(), exporter->figures(),
//          logger.dropped(), scrape);
#ifndef SETU_SERVICES_ROUTER_METRICS_H_
#define SETU_SERVICES_ROUTER_METRICS_H_

#include <cstdint>
#include <mutex>

#include "common/metrics/catalogue.h"
#include "common/metrics/histogram.h"
#include "common/metrics/scrape.h"
#include "common/tracing/batch_sender.h"
#include "services/router/callers.h"
#include "services/router/client_sink.h"
#include "services/router/router.h"

namespace setu::router {

class ClientFigures final : public FlowObserver {
 public:
  struct Snapshot {
    metrics::Histogram first_token{metrics::catalogue::kTimeToFirstToken};
    metrics::Histogram inter_token{metrics::catalogue::kInterTokenLatency};
    metrics::Histogram latency{metrics::catalogue::kRequestLatency};
    metrics::Histogram queue{metrics::catalogue::kQueueTime};
    metrics::Histogram grant{metrics::catalogue::kGrantTime};
    metrics::Histogram prefill{metrics::catalogue::kPrefillTime};
    metrics::Histogram decode{metrics::catalogue::kDecodeTime};
    metrics::Histogram transfer{metrics::catalogue::kTransferTime};
    metrics::Histogram attempts{metrics::catalogue::kAttempts};
    metrics::Histogram prompt_tokens{metrics::catalogue::kPromptLength};
    metrics::Histogram answer_tokens{metrics::catalogue::kAnswerLength};
    uint64_t stopped = 0;  // choices
    uint64_t length = 0;
    uint64_t mixed_numerics = 0;  // requests
  };

  void FirstToken(Duration since_arrival) override;
  void InterToken(Duration per_token, int32_t tokens) override;
  void Finished(const v1::Finished& choice) override;
  void MixedNumerics() override;
  void Ended(const absl::Status& status, Duration since_arrival) override;

  Snapshot snapshot() const;  // any thread

 private:
  mutable std::mutex mutex_;  // held to add or to copy, never while anything waits
  Snapshot figures_;
};

void Report(const RouterSnapshot& router, const ClientFigures::Snapshot& clients,
            const Callers::Figures& callers, const tracing::BatchFigures& traces,
            uint64_t log_lines_dropped, metrics::Scrape& scrape);

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_METRICS_H_
