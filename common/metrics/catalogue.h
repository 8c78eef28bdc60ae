// SPDX-License-Identifier: Apache-2.0
// Every metric of every Setu process: the names that dashboards and alerts may rely on. Where vLLM
// has a metric of the same meaning, its name behind the prefix and its buckets are kept
// (docs.vllm.ai, "Production metrics"), so that its dashboards need one change.
#ifndef SETU_COMMON_METRICS_CATALOGUE_H_
#define SETU_COMMON_METRICS_CATALOGUE_H_

#include <span>
#include <string>

#include "common/metrics/metric.h"

namespace setu::metrics {
namespace catalogue {

inline constexpr double kFirstTokenBounds[] = {0.001, 0.005, 0.01, 0.02,  0.04,  0.06,  0.08, 0.1,
                                               0.25,  0.5,   0.75, 1.0,   2.5,   5.0,   7.5,  10.0,
                                               20.0,  40.0,  80.0, 160.0, 640.0, 2560.0};
inline constexpr double kInterTokenBounds[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,
                                               0.3,  0.4,   0.5,  0.75,  1.0, 2.5,  5.0,
                                               7.5,  10.0,  20.0, 40.0,  80.0};
inline constexpr double kRequestBounds[] = {0.3,  0.5,   0.8,   1.0,   1.5,   2.0,    2.5,
                                            5.0,  10.0,  15.0,  20.0,  30.0,  40.0,   50.0,
                                            60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};
inline constexpr double kTokenBounds[] = {1,   2,    5,    10,   20,    50,    100,   200,
                                          500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

inline constexpr char kEveryRole[] = "router, prefill, decode";
inline constexpr char kWorkers[] = "prefill, decode";
inline constexpr char kRouter[] = "router";
inline constexpr char kPrefill[] = "prefill";
inline constexpr char kDecode[] = "decode";

// Requests. In every scrape of a process admitted == finished + failed + cancelled + running.
inline constexpr Metric kRequestsAdmitted{
    .name = "setu_requests_admitted_total",
    .type = Type::kCounter,
    .unit = "requests",
    .roles = kEveryRole,
    .help = "Requests taken in: queued or started by the router, granted room by a worker."};
inline constexpr Metric kRequestsFinished{.name = "setu_requests_finished_total",
                                          .type = Type::kCounter,
                                          .unit = "requests",
                                          .roles = kEveryRole,
                                          .help = "Requests that ended OK."};
inline constexpr Metric kRequestsFailed{.name = "setu_requests_failed_total",
                                        .type = Type::kCounter,
                                        .unit = "requests",
                                        .roles = kEveryRole,
                                        .help = "Requests that this process ended with an error."};
inline constexpr Metric kRequestsCancelled{
    .name = "setu_requests_cancelled_total",
    .type = Type::kCounter,
    .unit = "requests",
    .roles = kEveryRole,
    .help = "Requests that the caller ended, by cancelling or by its deadline."};
inline constexpr Metric kRequestsRefused{
    .name = "setu_requests_refused_total",
    .type = Type::kCounter,
    .unit = "requests",
    .roles = kEveryRole,
    .values = "invalid, full, draining, no_workers, late, quota, unauthenticated",
    .help =
        "Requests not taken in: wrong, without room, while draining; at a router also without "
        "workers that fit, without a turn in time, over a tenant's quota, without a valid token."};
inline constexpr Metric kRequestsRunning{.name = "setu_num_requests_running",
                                         .type = Type::kGauge,
                                         .unit = "requests",
                                         .roles = kEveryRole,
                                         .help = "Requests taken in and not over."};
inline constexpr Metric kRequestsWaiting{
    .name = "setu_num_requests_waiting",
    .type = Type::kGauge,
    .unit = "requests",
    .roles = "router, prefill",
    .help = "Of those running, the ones whose turn has not come."};
inline constexpr Metric kDraining{.name = "setu_draining",
                                  .type = Type::kGauge,
                                  .unit = "0 or 1",
                                  .roles = kEveryRole,
                                  .help = "1 while the process takes nothing new and finishes."};
inline constexpr Metric kLogLinesDropped{
    .name = "setu_log_lines_dropped_total",
    .type = Type::kCounter,
    .unit = "lines",
    .roles = kEveryRole,
    .help = "Log lines that were not written: nobody read the log, or it could not be written."};

// What a client sees, measured at the router.
inline constexpr Metric kTimeToFirstToken{
    .name = "setu_time_to_first_token_seconds",
    .type = Type::kHistogram,
    .unit = "seconds",
    .roles = kRouter,
    .help = "From a request's arrival to the first token of each choice.",
    .bounds = kFirstTokenBounds};
inline constexpr Metric kInterTokenLatency{.name = "setu_inter_token_latency_seconds",
                                           .type = Type::kHistogram,
                                           .unit = "seconds",
                                           .roles = kRouter,
                                           .help = "Between one token of a choice and the next.",
                                           .bounds = kInterTokenBounds};
inline constexpr Metric kRequestLatency{.name = "setu_e2e_request_latency_seconds",
                                        .type = Type::kHistogram,
                                        .unit = "seconds",
                                        .roles = kRouter,
                                        .help = "From a request's arrival to its end, if OK.",
                                        .bounds = kRequestBounds};
inline constexpr Metric kQueueTime{.name = "setu_request_queue_time_seconds",
                                   .type = Type::kHistogram,
                                   .unit = "seconds",
                                   .roles = kRouter,
                                   .help = "In the router's queue until workers were chosen.",
                                   .bounds = kRequestBounds};
inline constexpr Metric kPrefillTime{.name = "setu_request_prefill_time_seconds",
                                     .type = Type::kHistogram,
                                     .unit = "seconds",
                                     .roles = kRouter,
                                     .help = "From the decode worker's grant to the first token.",
                                     .bounds = kRequestBounds};
inline constexpr Metric kDecodeTime{.name = "setu_request_decode_time_seconds",
                                    .type = Type::kHistogram,
                                    .unit = "seconds",
                                    .roles = kRouter,
                                    .help = "From the first token to the end.",
                                    .bounds = kRequestBounds};
inline constexpr Metric kPromptLength{.name = "setu_request_prompt_tokens",
                                      .type = Type::kHistogram,
                                      .unit = "tokens",
                                      .roles = kRouter,
                                      .help = "Prompt of each finished choice.",
                                      .bounds = kTokenBounds};
inline constexpr Metric kAnswerLength{.name = "setu_request_generation_tokens",
                                      .type = Type::kHistogram,
                                      .unit = "tokens",
                                      .roles = kRouter,
                                      .help = "Answer of each finished choice.",
                                      .bounds = kTokenBounds};
inline constexpr Metric kChoicesFinished{.name = "setu_request_success_total",
                                         .type = Type::kCounter,
                                         .unit = "choices",
                                         .roles = kRouter,
                                         .values = "stop, length",
                                         .help = "Finished choices by what ended them."};

// Who may ask.
inline constexpr Metric kAuthTokens{.name = "setu_auth_tokens",
                                    .type = Type::kGauge,
                                    .unit = "tokens",
                                    .roles = kRouter,
                                    .help = "Bearer tokens that are taken; 0 also without a file."};
inline constexpr Metric kAuthFileStale{
    .name = "setu_auth_file_stale",
    .type = Type::kGauge,
    .unit = "0 or 1",
    .roles = kRouter,
    .help = "1 while the file of tokens cannot be used and an earlier state of it counts."};

// What it took to keep the stream going.
inline constexpr Metric kResumes{
    .name = "setu_resumes_total",
    .type = Type::kCounter,
    .unit = "sequences",
    .roles = kRouter,
    .help = "Sequences that went on elsewhere: preempted, moved by a drain, or their worker lost."};
inline constexpr Metric kRetries{.name = "setu_prefill_retries_total",
                                 .type = Type::kCounter,
                                 .unit = "attempts",
                                 .roles = kRouter,
                                 .help = "Prefill attempts beyond the first of a decode stream."};
inline constexpr Metric kLocalPrefills{.name = "setu_local_prefills_total",
                                       .type = Type::kCounter,
                                       .unit = "prompts",
                                       .roles = kRouter,
                                       .help = "Prompts that a decode worker computed itself."};
inline constexpr Metric kCircuitsOpened{
    .name = "setu_circuits_opened_total",
    .type = Type::kCounter,
    .unit = "openings",
    .roles = kRouter,
    .values = "prefill, decode, pair",
    .help =
        "Times that a worker got no new work for a few seconds because it failed; pair: KV did "
        "not arrive between two workers."};
inline constexpr Metric kMixedNumerics{
    .name = "setu_mixed_numerics_total",
    .type = Type::kCounter,
    .unit = "requests",
    .roles = kRouter,
    .help =
        "Requests computed on more than one numeric path: equal tokens are not promised "
        "(--allow-mixed-numerics)."};
inline constexpr Metric kPrefillWorkers{
    .name = "setu_prefill_workers",
    .type = Type::kGauge,
    .unit = "workers",
    .roles = kRouter,
    .help = "Prefill workers that are reachable, ready and fit the cluster."};
inline constexpr Metric kDecodeWorkers{
    .name = "setu_decode_workers",
    .type = Type::kGauge,
    .unit = "workers",
    .roles = kRouter,
    .help = "Decode workers that are reachable, ready and fit the cluster."};
inline constexpr Metric kPrefixIndexBlocks{
    .name = "setu_prefix_index_blocks",
    .type = Type::kGauge,
    .unit = "blocks",
    .roles = kRouter,
    .help = "Blocks of prompts that workers are known to have, each counted once."};
inline constexpr char kWhyUnusable[] = "unreachable, not_ready, draining, misfit";
inline constexpr Metric kPrefillUnusable{
    .name = "setu_prefill_workers_unusable",
    .type = Type::kGauge,
    .unit = "workers",
    .roles = kRouter,
    .values = kWhyUnusable,
    .help = "Listed prefill workers that get no new work; misfit: wrong role, model or release."};
inline constexpr Metric kDecodeUnusable{
    .name = "setu_decode_workers_unusable",
    .type = Type::kGauge,
    .unit = "workers",
    .roles = kRouter,
    .values = kWhyUnusable,
    .help = "Listed decode workers that get no new work; misfit: wrong role, model or release."};

// Work of a worker.
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

}  // namespace catalogue

// All of them, in the order of the table.
std::span<const Metric* const> Catalogue();

// The Markdown table of this room's README.
std::string CatalogueTable();

}  // namespace setu::metrics

#endif  // SETU_COMMON_METRICS_CATALOGUE_H_
