// SPDX-License-Identifier: Apache-2.0
// A decode worker's snapshot as samples of the metrics catalogue.
#ifndef SETU_SERVICES_DECODE_METRICS_H_
#define SETU_SERVICES_DECODE_METRICS_H_

#include <cstdint>

#include "common/metrics/scrape.h"
#include "services/decode/snapshot.h"

namespace setu::decode {

void Report(const Snapshot& snapshot, uint64_t log_lines_dropped, metrics::Scrape& scrape);

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_METRICS_H_
