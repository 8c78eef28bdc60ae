// SPDX-License-Identifier: Apache-2.0
// The part of the catalogue that is about the work of workers; catalogue.h has the rest, and is
// what others include.
#ifndef SETU_COMMON_METRICS_CATALOGUE_WORKERS_H_
#define SETU_COMMON_METRICS_CATALOGUE_WORKERS_H_

#include "common/metrics/catalogue_parts.h"
#include "common/metrics/metric.h"

namespace setu::metrics::catalogue {

inline constexpr Metric kPromptTokens{.name = "setu_prompt_tokens_total",
                                      .type = Type::kCounter,
                                      .unit = "tokens",
                                      .roles = kWorkers,
                                      .help = "Prompt tokens computed."};
inline constexpr Metric kGenerationTokens{.name = "setu_generation_tokens_total",
                                          .type = Type::kCounter,
                                          .unit = "tokens",
                                          .roles = kDecode,
                                          .help = "Tokens generated."};
inline constexpr Metric kSteps{.name = "setu_steps_total",
                               .type = Type::kCounter,
                               .unit = "steps",
                               .roles = kWorkers,
                               .help = "Passes through the model; tokens over steps: mean batch."};
inline constexpr Metric kBusySeconds{.name = "setu_busy_seconds_total",
                                     .type = Type::kCounter,
                                     .unit = "seconds",
                                     .roles = kWorkers,
                                     .help = "Time inside steps; its rate is the worker's load."};
inline constexpr Metric kSamplingSeconds{
    .name = "setu_sampling_seconds_total",
    .type = Type::kCounter,
    .unit = "seconds",
    .roles = kDecode,
    .help = "Time inside steps, outside the model: choosing tokens."};
inline constexpr Metric kBetweenSteps{
    .name = "setu_between_steps_seconds_total",
    .type = Type::kCounter,
    .unit = "seconds",
    .roles = kDecode,
    .help =
        "Time that steps with work waited for events, bookkeeping and sending; outside the "
        "model is the share (sampling + between) / (busy + between)."};
inline constexpr Metric kTokenRate{.name = "setu_tokens_per_second",
                                   .type = Type::kGauge,
                                   .unit = "tokens/s",
                                   .roles = kWorkers,
                                   .help = "Over the last busy steps; 0: not known yet."};
inline constexpr Metric kQueuedTokens{.name = "setu_queued_tokens",
                                      .type = Type::kGauge,
                                      .unit = "tokens",
                                      .roles = kWorkers,
                                      .help = "Prompt tokens taken in and still to compute."};
inline constexpr Metric kSequencesRunning{
    .name = "setu_sequences_running",
    .type = Type::kGauge,
    .unit = "sequences",
    .roles = kDecode,
    .help = "Places in the batch that are taken or promised."};
inline constexpr Metric kSequencesMax{.name = "setu_sequences_max",
                                      .type = Type::kGauge,
                                      .unit = "sequences",
                                      .roles = kDecode,
                                      .help = "Places in the batch."};
inline constexpr Metric kPreemptions{.name = "setu_num_preemptions_total",
                                     .type = Type::kCounter,
                                     .unit = "sequences",
                                     .roles = kDecode,
                                     .help = "Sequences that lost their blocks to others."};

// What holds a worker: its steps against what the machine can do (common/roofline).
inline constexpr Metric kRooflineLimit{
    .name = "setu_roofline_limit",
    .type = Type::kGauge,
    .unit = "0 or 1",
    .roles = kWorkers,
    .values = "idle, starved, link-bound, overhead-bound, memory-bound, compute-bound",
    .help = "1 for what held the worker over its last second or step."};
inline constexpr Metric kRooflineBytes{
    .name = "setu_roofline_bytes_total",
    .type = Type::kCounter,
    .unit = "bytes",
    .roles = kWorkers,
    .help = "What the steps had to move: weights once a step, KV read and written."};
inline constexpr Metric kRooflineOperations{
    .name = "setu_roofline_operations_total",
    .type = Type::kCounter,
    .unit = "operations",
    .roles = kWorkers,
    .help = "Multiplications and additions of the steps' products and attention."};
inline constexpr Metric kRooflineBandwidthPeak{
    .name = "setu_roofline_peak_bytes_per_second",
    .type = Type::kGauge,
    .unit = "bytes/s",
    .roles = kWorkers,
    .help = "Most that this machine was seen to read, over the model's weights."};
inline constexpr Metric kRooflineArithmeticPeak{
    .name = "setu_roofline_peak_operations_per_second",
    .type = Type::kGauge,
    .unit = "operations/s",
    .roles = kWorkers,
    .help = "Most that this machine was seen to compute, on the numeric path."};
inline constexpr Metric kRooflineLinkPeak{
    .name = "setu_roofline_peak_link_bytes_per_second",
    .type = Type::kGauge,
    .unit = "bytes/s",
    .roles = kPrefill,
    .help = "Most that a transfer of KV reached once its prompt was computed; 0: none yet."};
inline constexpr Metric kRooflineBandwidthShare{
    .name = "setu_roofline_bandwidth_share",
    .type = Type::kGauge,
    .unit = "0 to 1",
    .roles = kWorkers,
    .help = "Bytes per second inside steps, over the peak."};
inline constexpr Metric kRooflineArithmeticShare{
    .name = "setu_roofline_arithmetic_share",
    .type = Type::kGauge,
    .unit = "0 to 1",
    .roles = kWorkers,
    .help = "Operations per second inside steps, over the peak."};

// The KV cache and its way between workers.
inline constexpr Metric kBlocks{.name = "setu_kv_blocks",
                                .type = Type::kGauge,
                                .unit = "blocks",
                                .roles = kWorkers,
                                .help = "Blocks of the pool."};
inline constexpr Metric kBlocksHeld{.name = "setu_kv_blocks_held",
                                    .type = Type::kGauge,
                                    .unit = "blocks",
                                    .roles = kWorkers,
                                    .help = "Blocks held by sequences."};
inline constexpr Metric kBlocksCached{
    .name = "setu_kv_blocks_cached",
    .type = Type::kGauge,
    .unit = "blocks",
    .roles = kWorkers,
    .help = "Blocks held by nobody, with KV that a prompt may find again."};
inline constexpr Metric kPrefixQueries{.name = "setu_prefix_cache_queries_total",
                                       .type = Type::kCounter,
                                       .unit = "tokens",
                                       .roles = kWorkers,
                                       .help = "Tokens of prompts that were looked for."};
inline constexpr Metric kPrefixHits{.name = "setu_prefix_cache_hits_total",
                                    .type = Type::kCounter,
                                    .unit = "tokens",
                                    .roles = kWorkers,
                                    .help = "Of these, tokens whose KV was here already."};
inline constexpr Metric kBlocksPromised{.name = "setu_kv_blocks_promised",
                                        .type = Type::kGauge,
                                        .unit = "blocks",
                                        .roles = kDecode,
                                        .help = "Blocks granted and not bound yet."};
inline constexpr Metric kCacheUsage{.name = "setu_kv_cache_usage_perc",
                                    .type = Type::kGauge,
                                    .unit = "0 to 1",
                                    .roles = kWorkers,
                                    .help = "Share of the pool's blocks that are held."};
inline constexpr Metric kTransfersRunning{.name = "setu_kv_transfers_running",
                                          .type = Type::kGauge,
                                          .unit = "transfers",
                                          .roles = kDecode,
                                          .help = "Prompts whose blocks are arriving."};
inline constexpr Metric kTransferBytes{.name = "setu_kv_transfer_bytes_total",
                                       .type = Type::kCounter,
                                       .unit = "bytes",
                                       .roles = kWorkers,
                                       .label = "transport",
                                       .values = "grpc, shm",
                                       .help = "KV bytes sent (prefill) or received (decode)."};
inline constexpr Metric kTransfersFailed{
    .name = "setu_kv_transfers_failed_total",
    .type = Type::kCounter,
    .unit = "transfers",
    .roles = kDecode,
    .values = "corrupt, invalid, stalled",
    .help =
        "Prompts whose blocks began to arrive and did not all come: what arrived was not what "
        "was sent (DATA_LOSS), did not fit, or nothing came any more."};

}  // namespace setu::metrics::catalogue

#endif  // SETU_COMMON_METRICS_CATALOGUE_WORKERS_H_
