// SPDX-License-Identifier: Apache-2.0
// What every service counts of its requests, by the same names in its snapshot.
//
//   void Report(const Snapshot& snapshot, metrics::Scrape& scrape) {
//     metrics::AddRequests(snapshot, scrape);
//     scrape.Add(catalogue::kRequestsRunning, snapshot.running);
#ifndef SETU_COMMON_METRICS_REQUESTS_H_
#define SETU_COMMON_METRICS_REQUESTS_H_

#include <cstdint>

#include "common/metrics/catalogue.h"
#include "common/metrics/scrape.h"

namespace setu::metrics {

// All but those that run: each service says itself which those are.
template <typename Snapshot>
void AddRequests(const Snapshot& snapshot, Scrape& scrape) {
  const auto add = [&](const Metric& metric, uint64_t number, const char* reason = "") {
    scrape.Add(metric, static_cast<double>(number), reason);
  };
  add(catalogue::kRequestsAdmitted, snapshot.admitted);
  add(catalogue::kRequestsFinished, snapshot.finished);
  add(catalogue::kRequestsFailed, snapshot.failed);
  add(catalogue::kRequestsCancelled, snapshot.cancelled);
  add(catalogue::kRequestsRefused, snapshot.refused_invalid, "invalid");
  add(catalogue::kRequestsRefused, snapshot.refused_full, "full");
  add(catalogue::kRequestsRefused, snapshot.refused_draining, "draining");
  add(catalogue::kDraining, snapshot.draining ? 1 : 0);
}

}  // namespace setu::metrics

#endif  // SETU_COMMON_METRICS_REQUESTS_H_
