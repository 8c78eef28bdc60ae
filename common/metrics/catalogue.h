// SPDX-License-Identifier: Apache-2.0
// Every metric of every Setu process: the names that dashboards and alerts may rely on. Where vLLM
// has a metric of the same meaning, its name behind the prefix and its buckets are kept
// (docs.vllm.ai, "Production metrics"), so that its dashboards need one change.
#ifndef SETU_COMMON_METRICS_CATALOGUE_H_
#define SETU_COMMON_METRICS_CATALOGUE_H_

#include <span>
#include <string>

#include "common/metrics/catalogue_parts.h"
#include "common/metrics/catalogue_workers.h"
#include "common/metrics/metric.h"

namespace setu::metrics {
namespace catalogue {

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
inline constexpr Metric kGrantTime{
    .name = "setu_request_grant_time_seconds",
    .type = Type::kHistogram,
    .unit = "seconds",
    .roles = kRouter,
    .help = "From the choice of workers until the decode worker promised room.",
    .bounds = kFirstTokenBounds};
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
inline constexpr Metric kTransferTime{
    .name = "setu_request_transfer_time_seconds",
    .type = Type::kHistogram,
    .unit = "seconds",
    .roles = kRouter,
    .help = "From the first token until the decode worker held the KV, where KV was sent.",
    .bounds = kFirstTokenBounds};
inline constexpr Metric kAttempts{.name = "setu_request_attempts",
                                  .type = Type::kHistogram,
                                  .unit = "attempts",
                                  .roles = kRouter,
                                  .help = "Prefill attempts until a choice had finished.",
                                  .bounds = kAttemptBounds};
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

// Of --otlp-endpoint.
inline constexpr Metric kSpansExported{.name = "setu_trace_spans_exported_total",
                                       .type = Type::kCounter,
                                       .unit = "spans",
                                       .roles = kRouter,
                                       .help = "Spans that the collector of traces has taken."};
inline constexpr Metric kSpansDropped{
    .name = "setu_trace_spans_dropped_total",
    .type = Type::kCounter,
    .unit = "spans",
    .roles = kRouter,
    .values = "no_room, undelivered, rejected",
    .help =
        "Spans that are lost: too many waited for the collector, it did not take their batch, or "
        "it took their batch without them."};

// What it took to keep the stream going.
inline constexpr Metric kResumes{
    .name = "setu_resumes_total",
    .type = Type::kCounter,
    .unit = "sequences",
    .roles = kRouter,
    .values = "preempted, rebalanced, drained, lost",
    .help =
        "Sequences that went on in another stream: they lost their blocks and their worker had "
        "room again, or another had (rebalanced); it drained; it was lost."};
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

}  // namespace catalogue

// All of them, in the order of the table.
std::span<const Metric* const> Catalogue();

// The Markdown table of this room's README.
std::string CatalogueTable();

}  // namespace setu::metrics

#endif  // SETU_COMMON_METRICS_CATALOGUE_H_
