// SPDX-License-Identifier: Apache-2.0
#include "services/prefill/metrics.h"

#include <algorithm>
#include <chrono>

#include "common/metrics/catalogue.h"
#include "common/metrics/requests.h"
#include "common/worker/roofline_report.h"

namespace setu::prefill {

void Report(const Snapshot& snapshot, uint64_t log_lines_dropped, metrics::Scrape& scrape) {
  using namespace metrics::catalogue;
  const auto count = [](auto number) { return static_cast<double>(number); };
  metrics::AddRequests(snapshot, scrape);
  scrape.Add(kLogLinesDropped, count(log_lines_dropped));
  const int32_t held = snapshot.blocks_total - snapshot.blocks_free;
  scrape.Add(kRequestsRunning, snapshot.running + snapshot.queued);
  scrape.Add(kRequestsWaiting, snapshot.queued);
  scrape.Add(kPromptTokens, count(snapshot.tokens));
  scrape.Add(kSteps, count(snapshot.steps));
  scrape.Add(kBusySeconds, std::chrono::duration<double>(snapshot.busy).count());
  scrape.Add(kTokenRate, snapshot.tokens_per_second);
  worker::AddRoofline(snapshot.roofline, scrape);
  scrape.Add(kRooflineLinkPeak, snapshot.roofline.link_bytes_per_second);
  scrape.Add(kQueuedTokens, count(snapshot.queued_tokens));
  scrape.Add(kBlocks, snapshot.blocks_total);
  scrape.Add(kBlocksHeld, held);
  scrape.Add(kBlocksCached, snapshot.blocks_cached);
  scrape.Add(kPrefixQueries, count(snapshot.prefix_tokens_asked));
  scrape.Add(kPrefixHits, count(snapshot.prefix_tokens_known));
  scrape.Add(kCacheUsage, count(held) / std::max(snapshot.blocks_total, 1));
  scrape.Add(kTransferBytes, count(snapshot.kv_bytes - snapshot.kv_bytes_by_shm), "grpc");
  scrape.Add(kTransferBytes, count(snapshot.kv_bytes_by_shm), "shm");
}

}  // namespace setu::prefill
