// SPDX-License-Identifier: Apache-2.0
// A prefill worker's snapshot as samples of the metrics catalogue.
#ifndef SETU_SERVICES_PREFILL_METRICS_H_
#define SETU_SERVICES_PREFILL_METRICS_H_

#include <cstdint>

#include "common/metrics/scrape.h"
#include "services/prefill/snapshot.h"

namespace setu::prefill {

void Report(const Snapshot& snapshot, uint64_t log_lines_dropped, metrics::Scrape& scrape);

}  // namespace setu::prefill

#endif  // SETU_SERVICES_PREFILL_METRICS_H_
