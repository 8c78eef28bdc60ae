// SPDX-License-Identifier: Apache-2.0
#include "services/router/metrics.h"

#include <gtest/gtest.h>

#include "tests/support/scrape_values.h"

namespace setu::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

test::ScrapeValues Scraped(const RouterSnapshot& router, const ClientFigures& figures,
                           const Callers::Figures& callers = {}) {
  metrics::Scrape scrape("m", "router");
  Report(router, figures.snapshot(), callers,
         {.exported = 5, .no_room = 6, .undelivered = 7, .rejected = 8}, 9, scrape);
  return test::ScrapeValues(scrape);
}

TEST(Metrics, SayAllThatTheCatalogueListsForTheRole) {
  EXPECT_EQ(Scraped({}, ClientFigures()).names(), test::CatalogueNames("router"));
}

TEST(Metrics, CountTheLogLinesThatWereDropped) {
  EXPECT_EQ(Scraped({}, ClientFigures())["setu_log_lines_dropped_total"], 9);
}

TEST(Metrics, SpansCountByWhatBecameOfThem) {
  const auto values = Scraped({}, ClientFigures());
  EXPECT_EQ(values["setu_trace_spans_exported_total"], 5);
  EXPECT_EQ(values["setu_trace_spans_dropped_total{no_room}"], 6);
  EXPECT_EQ(values["setu_trace_spans_dropped_total{undelivered}"], 7);
  EXPECT_EQ(values["setu_trace_spans_dropped_total{rejected}"], 8);
}

TEST(Metrics, RequestsAddUp) {
  const auto values = Scraped(
      {.admitted = 15, .finished = 9, .failed = 3, .cancelled = 1, .running = 2}, ClientFigures());
  EXPECT_EQ(values["setu_requests_admitted_total"],
            values["setu_requests_finished_total"] + values["setu_requests_failed_total"] +
                values["setu_requests_cancelled_total"] + values["setu_num_requests_running"]);
}

TEST(Metrics, LackOfWorkersIsNoOverload) {
  const auto values = Scraped({.refused_full = 1, .refused_no_workers = 2}, ClientFigures());
  EXPECT_EQ(values["setu_requests_refused_total{full}"], 1);
  EXPECT_EQ(values["setu_requests_refused_total{no_workers}"], 2);
}

TEST(Metrics, EachCauseOfARefusalCountsByItself) {
  const auto values = Scraped({.refused_late = 3, .refused_quota = 4}, ClientFigures(),
                              {.refused = 5, .tokens = 6, .stale = true});
  EXPECT_EQ(values["setu_requests_refused_total{late}"], 3);
  EXPECT_EQ(values["setu_requests_refused_total{quota}"], 4);
  EXPECT_EQ(values["setu_requests_refused_total{unauthenticated}"], 5);
  EXPECT_EQ(values["setu_requests_refused_total{full}"], 0);
  EXPECT_EQ(values["setu_auth_tokens"], 6);
  EXPECT_EQ(values["setu_auth_file_stale"], 1);
}

TEST(Metrics, WorkersThatGetNothingCountByRoleAndState) {
  const auto values =
      Scraped({.prefill_workers = 1,
               .decode_workers = 2,
               .prefill_unusable = {.misfit = 3},
               .decode_unusable = {.unreachable = 4, .not_ready = 5, .draining = 6}},
              ClientFigures());
  EXPECT_EQ(values["setu_prefill_workers"], 1);
  EXPECT_EQ(values["setu_decode_workers"], 2);
  EXPECT_EQ(values["setu_prefill_workers_unusable{misfit}"], 3);
  EXPECT_EQ(values["setu_prefill_workers_unusable{unreachable}"], 0);
  EXPECT_EQ(values["setu_decode_workers_unusable{unreachable}"], 4);
  EXPECT_EQ(values["setu_decode_workers_unusable{not_ready}"], 5);
  EXPECT_EQ(values["setu_decode_workers_unusable{draining}"], 6);
  EXPECT_EQ(values["setu_decode_workers_unusable{misfit}"], 0);
}

TEST(Metrics, SequencesThatMovedCountByWhy) {
  const auto values = Scraped(
      {.resumes = {.preempted = 1, .rebalanced = 2, .drained = 3, .lost = 4}}, ClientFigures());
  EXPECT_EQ(values["setu_resumes_total{preempted}"], 1);
  EXPECT_EQ(values["setu_resumes_total{rebalanced}"], 2);
  EXPECT_EQ(values["setu_resumes_total{drained}"], 3);
  EXPECT_EQ(values["setu_resumes_total{lost}"], 4);
}

TEST(Metrics, CircuitsThatOpenedCountByWhatTheyGuard) {
  const auto values =
      Scraped({.circuits_opened = {.prefill = 1, .decode = 2, .pair = 3}}, ClientFigures());
  EXPECT_EQ(values["setu_circuits_opened_total{prefill}"], 1);
  EXPECT_EQ(values["setu_circuits_opened_total{decode}"], 2);
  EXPECT_EQ(values["setu_circuits_opened_total{pair}"], 3);
}

TEST(Metrics, RequestsOfMixedNumericsAreCounted) {
  ClientFigures figures;
  figures.MixedNumerics();
  figures.MixedNumerics();
  EXPECT_EQ(Scraped({}, figures)["setu_mixed_numerics_total"], 2);
}

TEST(Metrics, ClientsTimesAreInSecondsAndPerToken) {
  ClientFigures figures;
  figures.FirstToken(milliseconds(70));
  figures.InterToken(milliseconds(30), 4);
  const ClientFigures::Snapshot seen = figures.snapshot();
  EXPECT_EQ(seen.first_token.count(), 1u);
  EXPECT_DOUBLE_EQ(seen.first_token.sum(), 0.07);
  EXPECT_EQ(seen.inter_token.count(), 4u);
  EXPECT_DOUBLE_EQ(seen.inter_token.sum(), 0.12);
}

TEST(Metrics, AChoiceLeavesItsLengthsAndStages) {
  ClientFigures figures;
  v1::Finished choice;
  choice.set_finish_reason(v1::FINISH_REASON_LENGTH);
  choice.mutable_usage()->set_prompt_tokens(100);
  choice.mutable_usage()->set_completion_tokens(20);
  choice.mutable_timings()->set_queue_ms(500);
  choice.mutable_timings()->set_grant_ms(250);
  choice.mutable_timings()->set_prefill_ms(1500);
  choice.mutable_timings()->set_decode_ms(2500);
  choice.mutable_timings()->set_transfer_ms(125);
  choice.mutable_timings()->set_attempts(2);
  figures.Finished(choice);
  choice.mutable_timings()->set_kv_bytes(4096);
  choice.set_finish_reason(v1::FINISH_REASON_STOP);
  figures.Finished(choice);
  figures.Finished(choice);
  const ClientFigures::Snapshot seen = figures.snapshot();
  EXPECT_EQ(seen.length, 1u);
  EXPECT_EQ(seen.stopped, 2u);
  EXPECT_DOUBLE_EQ(seen.queue.sum(), 1.5);
  EXPECT_DOUBLE_EQ(seen.grant.sum(), 0.75);
  EXPECT_DOUBLE_EQ(seen.prefill.sum(), 4.5);
  EXPECT_DOUBLE_EQ(seen.decode.sum(), 7.5);
  EXPECT_DOUBLE_EQ(seen.transfer.sum(), 0.25) << "the first choice's KV was not sent";
  EXPECT_EQ(seen.transfer.count(), 2u);
  EXPECT_DOUBLE_EQ(seen.attempts.sum(), 6);
  EXPECT_DOUBLE_EQ(seen.prompt_tokens.sum(), 300);
  EXPECT_DOUBLE_EQ(seen.answer_tokens.sum(), 60);
}

TEST(Metrics, OnlyARequestThatEndedWellHasALatency) {
  ClientFigures figures;
  figures.Ended(absl::CancelledError(""), seconds(9));
  figures.Ended(absl::OkStatus(), seconds(2));
  EXPECT_EQ(figures.snapshot().latency.count(), 1u);
  EXPECT_DOUBLE_EQ(figures.snapshot().latency.sum(), 2.0);
}

}  // namespace
}  // namespace setu::router
