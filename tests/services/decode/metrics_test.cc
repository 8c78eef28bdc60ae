// SPDX-License-Identifier: Apache-2.0
#include "services/decode/metrics.h"

#include <gtest/gtest.h>

#include "tests/support/scrape_values.h"

namespace setu::decode {
namespace {

test::ScrapeValues Scraped(const Snapshot& snapshot) {
  metrics::Scrape scrape("m", "decode");
  Report(snapshot, 9, scrape);
  return test::ScrapeValues(scrape);
}

TEST(Metrics, SayAllThatTheCatalogueListsForTheRole) {
  EXPECT_EQ(Scraped({}).names(), test::CatalogueNames("decode"));
}

TEST(Metrics, CountTheLogLinesThatWereDropped) {
  EXPECT_EQ(Scraped({})["setu_log_lines_dropped_total"], 9);
}

TEST(Metrics, RequestsAddUp) {
  const auto values =
      Scraped({.admitted = 15, .finished = 9, .failed = 3, .cancelled = 1, .running = 2});
  EXPECT_EQ(values["setu_requests_admitted_total"],
            values["setu_requests_finished_total"] + values["setu_requests_failed_total"] +
                values["setu_requests_cancelled_total"] + values["setu_num_requests_running"]);
}

TEST(Metrics, RefusalsSayWhy) {
  const auto values = Scraped({.refused_invalid = 1, .refused_full = 20, .refused_draining = 300});
  EXPECT_EQ(values["setu_requests_refused_total{invalid}"], 1);
  EXPECT_EQ(values["setu_requests_refused_total{full}"], 20);
  EXPECT_EQ(values["setu_requests_refused_total{draining}"], 300);
}

TEST(Metrics, FailedTransfersSayWhy) {
  const auto values =
      Scraped({.transfers_corrupt = 1, .transfers_invalid = 20, .transfers_stalled = 300});
  EXPECT_EQ(values["setu_kv_transfers_failed_total{corrupt}"], 1);
  EXPECT_EQ(values["setu_kv_transfers_failed_total{invalid}"], 20);
  EXPECT_EQ(values["setu_kv_transfers_failed_total{stalled}"], 300);
}

TEST(Metrics, ArePlainNumbersOfTheSnapshot) {
  const auto values = Scraped({.sequences = 3,
                               .sequences_max = 16,
                               .transfers = 2,
                               .blocks_total = 8,
                               .blocks_held = 6,
                               .blocks_promised = 1,
                               .tokens = 77,
                               .preemptions = 4,
                               .kv_bytes_received = 100,
                               .kv_bytes_by_shm = 30,
                               .busy = std::chrono::milliseconds(2500),
                               .sampling = std::chrono::milliseconds(250),
                               .between_steps = std::chrono::milliseconds(500)});
  EXPECT_EQ(values["setu_sequences_running"], 3);
  EXPECT_EQ(values["setu_sequences_max"], 16);
  EXPECT_EQ(values["setu_kv_transfers_running"], 2);
  EXPECT_EQ(values["setu_kv_blocks"], 8);
  EXPECT_EQ(values["setu_kv_blocks_promised"], 1);
  EXPECT_EQ(values["setu_kv_cache_usage_perc"], 0.75);
  EXPECT_EQ(values["setu_generation_tokens_total"], 77);
  EXPECT_EQ(values["setu_num_preemptions_total"], 4);
  EXPECT_EQ(values["setu_kv_transfer_bytes_total{grpc}"], 70);
  EXPECT_EQ(values["setu_kv_transfer_bytes_total{shm}"], 30);
  EXPECT_EQ(values["setu_busy_seconds_total"], 2.5);
  EXPECT_EQ(values["setu_sampling_seconds_total"], 0.25);
  EXPECT_EQ(values["setu_between_steps_seconds_total"], 0.5);
}

}  // namespace
}  // namespace setu::decode
