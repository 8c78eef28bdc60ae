// SPDX-License-Identifier: Apache-2.0
#include "services/prefill/metrics.h"

#include <gtest/gtest.h>

#include "tests/support/scrape_values.h"

namespace setu::prefill {
namespace {

test::ScrapeValues Scraped(const Snapshot& snapshot) {
  metrics::Scrape scrape("m", "prefill");
  Report(snapshot, 9, scrape);
  return test::ScrapeValues(scrape);
}

TEST(Metrics, SayAllThatTheCatalogueListsForTheRole) {
  EXPECT_EQ(Scraped({}).names(), test::CatalogueNames("prefill"));
}

TEST(Metrics, CountTheLogLinesThatWereDropped) {
  EXPECT_EQ(Scraped({})["setu_log_lines_dropped_total"], 9);
}

TEST(Metrics, RequestsAddUp) {
  const auto values = Scraped(
      {.admitted = 20, .finished = 9, .failed = 3, .cancelled = 1, .running = 2, .queued = 5});
  EXPECT_EQ(values["setu_requests_admitted_total"],
            values["setu_requests_finished_total"] + values["setu_requests_failed_total"] +
                values["setu_requests_cancelled_total"] + values["setu_num_requests_running"]);
  EXPECT_EQ(values["setu_num_requests_waiting"], 5);
}

TEST(Metrics, ArePlainNumbersOfTheSnapshot) {
  const auto values = Scraped({.queued_tokens = 4096,
                               .tokens = 123,
                               .kv_bytes = uint64_t{1} << 40,
                               .kv_bytes_by_shm = 24,
                               .busy = std::chrono::milliseconds(2500),
                               .blocks_total = 8,
                               .blocks_free = 6,
                               .draining = true});
  EXPECT_EQ(values["setu_queued_tokens"], 4096);
  EXPECT_EQ(values["setu_prompt_tokens_total"], 123);
  EXPECT_EQ(values["setu_kv_transfer_bytes_total{grpc}"], 1099511627776.0 - 24);
  EXPECT_EQ(values["setu_kv_transfer_bytes_total{shm}"], 24);
  EXPECT_EQ(values["setu_busy_seconds_total"], 2.5);
  EXPECT_EQ(values["setu_kv_blocks_held"], 2);
  EXPECT_EQ(values["setu_kv_cache_usage_perc"], 0.25);
  EXPECT_EQ(values["setu_draining"], 1);
}

}  // namespace
}  // namespace setu::prefill
