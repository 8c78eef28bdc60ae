// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/catalogue.h"

#include "absl/strings/str_cat.h"

namespace setu::metrics {
namespace {

constexpr const Metric* kAll[] = {&catalogue::kRequestsAdmitted,
                                  &catalogue::kRequestsFinished,
                                  &catalogue::kRequestsFailed,
                                  &catalogue::kRequestsCancelled,
                                  &catalogue::kRequestsRefused,

                                  &catalogue::kRequestsRunning,
                                  &catalogue::kRequestsWaiting,
                                  &catalogue::kDraining,
                                  &catalogue::kLogLinesDropped,
                                  &catalogue::kTimeToFirstToken,
                                  &catalogue::kInterTokenLatency,
                                  &catalogue::kRequestLatency,
                                  &catalogue::kQueueTime,
                                  &catalogue::kGrantTime,
                                  &catalogue::kPrefillTime,
                                  &catalogue::kDecodeTime,
                                  &catalogue::kTransferTime,
                                  &catalogue::kAttempts,
                                  &catalogue::kPromptLength,
                                  &catalogue::kAnswerLength,
                                  &catalogue::kChoicesFinished,
                                  &catalogue::kAuthTokens,
                                  &catalogue::kAuthFileStale,
                                  &catalogue::kSpansExported,
                                  &catalogue::kSpansDropped,
                                  &catalogue::kResumes,
                                  &catalogue::kRetries,
                                  &catalogue::kLocalPrefills,
                                  &catalogue::kCircuitsOpened,
                                  &catalogue::kMixedNumerics,
                                  &catalogue::kPrefillWorkers,
                                  &catalogue::kDecodeWorkers,
                                  &catalogue::kPrefixIndexBlocks,
                                  &catalogue::kPrefillUnusable,
                                  &catalogue::kDecodeUnusable,
                                  &catalogue::kPromptTokens,
                                  &catalogue::kGenerationTokens,
                                  &catalogue::kSteps,
                                  &catalogue::kBusySeconds,
                                  &catalogue::kSamplingSeconds,
                                  &catalogue::kBetweenSteps,
                                  &catalogue::kTokenRate,
                                  &catalogue::kQueuedTokens,
                                  &catalogue::kSequencesRunning,
                                  &catalogue::kSequencesMax,
                                  &catalogue::kPreemptions,
                                  &catalogue::kRooflineLimit,
                                  &catalogue::kRooflineBytes,
                                  &catalogue::kRooflineOperations,
                                  &catalogue::kRooflineBandwidthPeak,
                                  &catalogue::kRooflineArithmeticPeak,
                                  &catalogue::kRooflineLinkPeak,
                                  &catalogue::kRooflineBandwidthShare,
                                  &catalogue::kRooflineArithmeticShare,
                                  &catalogue::kBlocks,
                                  &catalogue::kBlocksHeld,
                                  &catalogue::kBlocksCached,
                                  &catalogue::kPrefixQueries,
                                  &catalogue::kPrefixHits,
                                  &catalogue::kBlocksPromised,
                                  &catalogue::kCacheUsage,
                                  &catalogue::kTransfersRunning,
                                  &catalogue::kTransferBytes,
                                  &catalogue::kTransfersFailed};

const char* Name(Type type) {
  if (type == Type::kCounter) return "counter";
  return type == Type::kGauge ? "gauge" : "histogram";
}

}  // namespace

std::span<const Metric* const> Catalogue() { return kAll; }

std::string CatalogueTable() {
  std::string table =
      "| Metric | Type | Unit | Reported by | Label | What it says "
      "|\n|---|---|---|---|---|---|\n";
  for (const Metric* metric : kAll) {
    absl::StrAppend(&table, "| `", metric->name, "` | ", Name(metric->type), " | ", metric->unit,
                    " | ", metric->roles, " | ");
    if (*metric->values != '\0') absl::StrAppend(&table, metric->label, ": ", metric->values);
    absl::StrAppend(&table, " | ", metric->help, " |\n");
  }
  return table;
}

}  // namespace setu::metrics
