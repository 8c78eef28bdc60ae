// SPDX-License-Identifier: Apache-2.0
#include "services/router/metrics.h"

#include <chrono>

#include "common/metrics/requests.h"

namespace setu::router {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

void Add(const metrics::Metric& metric, const UnusableWorkers& workers, metrics::Scrape& scrape) {
  scrape.Add(metric, static_cast<double>(workers.unreachable), "unreachable");
  scrape.Add(metric, static_cast<double>(workers.not_ready), "not_ready");
  scrape.Add(metric, static_cast<double>(workers.draining), "draining");
  scrape.Add(metric, static_cast<double>(workers.misfit), "misfit");
}

}  // namespace

void ClientFigures::FirstToken(Duration since_arrival) {
  const std::lock_guard lock(mutex_);
  figures_.first_token.Observe(Seconds(since_arrival));
}

void ClientFigures::InterToken(Duration per_token, int32_t tokens) {
  const std::lock_guard lock(mutex_);
  figures_.inter_token.Observe(Seconds(per_token), static_cast<uint64_t>(tokens));
}

void ClientFigures::Finished(const v1::Finished& choice) {
  constexpr double kMsPerSecond = 1000.0;
  const v1::Timings& timings = choice.timings();
  const std::lock_guard lock(mutex_);
  ++(choice.finish_reason() == v1::FINISH_REASON_LENGTH ? figures_.length : figures_.stopped);
  figures_.queue.Observe(timings.queue_ms() / kMsPerSecond);
  figures_.grant.Observe(timings.grant_ms() / kMsPerSecond);
  figures_.prefill.Observe(timings.prefill_ms() / kMsPerSecond);
  figures_.decode.Observe(timings.decode_ms() / kMsPerSecond);
  if (timings.kv_bytes() > 0) figures_.transfer.Observe(timings.transfer_ms() / kMsPerSecond);
  figures_.attempts.Observe(timings.attempts());
  figures_.prompt_tokens.Observe(choice.usage().prompt_tokens());
  figures_.answer_tokens.Observe(choice.usage().completion_tokens());
}

void ClientFigures::MixedNumerics() {
  const std::lock_guard lock(mutex_);
  ++figures_.mixed_numerics;
}

void ClientFigures::Ended(const absl::Status& status, Duration since_arrival) {
  if (!status.ok()) return;
  const std::lock_guard lock(mutex_);
  figures_.latency.Observe(Seconds(since_arrival));
}

ClientFigures::Snapshot ClientFigures::snapshot() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

void Report(const RouterSnapshot& router, const ClientFigures::Snapshot& clients,
            const Callers::Figures& callers, const tracing::BatchFigures& traces,
            uint64_t log_lines_dropped, metrics::Scrape& scrape) {
  using namespace metrics::catalogue;
  const auto count = [](auto number) { return static_cast<double>(number); };
  metrics::AddRequests(router, scrape);
  scrape.Add(kRequestsRefused, count(router.refused_no_workers), "no_workers");
  scrape.Add(kRequestsRefused, count(router.refused_late), "late");
  scrape.Add(kRequestsRefused, count(router.refused_quota), "quota");
  scrape.Add(kRequestsRefused, count(callers.refused), "unauthenticated");
  scrape.Add(kAuthTokens, count(callers.tokens));
  scrape.Add(kAuthFileStale, callers.stale ? 1 : 0);
  scrape.Add(kLogLinesDropped, count(log_lines_dropped));
  scrape.Add(kSpansExported, count(traces.exported));
  scrape.Add(kSpansDropped, count(traces.no_room), "no_room");
  scrape.Add(kSpansDropped, count(traces.undelivered), "undelivered");
  scrape.Add(kSpansDropped, count(traces.rejected), "rejected");
  scrape.Add(kRequestsRunning, count(router.running));
  scrape.Add(kRequestsWaiting, count(router.queue_length));
  scrape.Add(kResumes, count(router.resumes.preempted), "preempted");
  scrape.Add(kResumes, count(router.resumes.rebalanced), "rebalanced");
  scrape.Add(kResumes, count(router.resumes.drained), "drained");
  scrape.Add(kResumes, count(router.resumes.lost), "lost");
  scrape.Add(kRetries, count(router.retries));
  scrape.Add(kLocalPrefills, count(router.local_prefills));
  scrape.Add(kCircuitsOpened, count(router.circuits_opened.prefill), "prefill");
  scrape.Add(kCircuitsOpened, count(router.circuits_opened.decode), "decode");
  scrape.Add(kCircuitsOpened, count(router.circuits_opened.pair), "pair");
  scrape.Add(kMixedNumerics, count(clients.mixed_numerics));
  scrape.Add(kPrefillWorkers, count(router.prefill_workers));
  scrape.Add(kDecodeWorkers, count(router.decode_workers));
  scrape.Add(kPrefixIndexBlocks, count(router.prefix_blocks));
  Add(kPrefillUnusable, router.prefill_unusable, scrape);
  Add(kDecodeUnusable, router.decode_unusable, scrape);
  scrape.Add(kChoicesFinished, count(clients.stopped), "stop");
  scrape.Add(kChoicesFinished, count(clients.length), "length");
  for (const metrics::Histogram* histogram :
       {&clients.first_token, &clients.inter_token, &clients.latency, &clients.queue,
        &clients.grant, &clients.prefill, &clients.decode, &clients.transfer, &clients.attempts,
        &clients.prompt_tokens, &clients.answer_tokens}) {
    scrape.Add(*histogram);
  }
}

}  // namespace setu::router
