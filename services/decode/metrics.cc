// SPDX-License-Identifier: Apache-2.0
#include "services/decode/metrics.h"

#include <algorithm>
#include <chrono>

#include "common/metrics/catalogue.h"
#include "common/metrics/requests.h"
#include "common/worker/roofline_report.h"

namespace setu::decode {

void Report(const Snapshot& snapshot, uint64_t log_lines_dropped, metrics::Scrape& scrape) {
  using namespace metrics::catalogue;
  const auto count = [](uint64_t number) { return static_cast<double>(number); };
  metrics::AddRequests(snapshot, scrape);
  scrape.Add(kLogLinesDropped, count(log_lines_dropped));
  scrape.Add(kRequestsRunning, snapshot.running);
  scrape.Add(kPromptTokens, count(snapshot.prompt_tokens));
  scrape.Add(kQueuedTokens, static_cast<double>(snapshot.prompt_tokens_left));
  scrape.Add(kGenerationTokens, count(snapshot.tokens));
  scrape.Add(kSteps, count(snapshot.steps));
  scrape.Add(kBusySeconds, std::chrono::duration<double>(snapshot.busy).count());
  scrape.Add(kSamplingSeconds, std::chrono::duration<double>(snapshot.sampling).count());
  scrape.Add(kBetweenSteps, std::chrono::duration<double>(snapshot.between_steps).count());
  scrape.Add(kTokenRate, snapshot.tokens_per_second);
  worker::AddRoofline(snapshot.roofline, scrape);
  scrape.Add(kSequencesRunning, snapshot.sequences);
  scrape.Add(kSequencesMax, snapshot.sequences_max);
  scrape.Add(kPreemptions, count(snapshot.preemptions));
  scrape.Add(kBlocks, snapshot.blocks_total);
  scrape.Add(kBlocksHeld, snapshot.blocks_held);
  scrape.Add(kBlocksCached, snapshot.blocks_cached);
  scrape.Add(kPrefixQueries, count(snapshot.prefix_tokens_asked));
  scrape.Add(kPrefixHits, count(snapshot.prefix_tokens_known));
  scrape.Add(kBlocksPromised, snapshot.blocks_promised);
  scrape.Add(kCacheUsage,
             static_cast<double>(snapshot.blocks_held) / std::max(snapshot.blocks_total, 1));
  scrape.Add(kTransfersRunning, snapshot.transfers);
  scrape.Add(kTransferBytes, count(snapshot.kv_bytes_received - snapshot.kv_bytes_by_shm), "grpc");
  scrape.Add(kTransferBytes, count(snapshot.kv_bytes_by_shm), "shm");
  scrape.Add(kTransfersFailed, count(snapshot.transfers_corrupt), "corrupt");
  scrape.Add(kTransfersFailed, count(snapshot.transfers_invalid), "invalid");
  scrape.Add(kTransfersFailed, count(snapshot.transfers_stalled), "stalled");
}

}  // namespace setu::decode
