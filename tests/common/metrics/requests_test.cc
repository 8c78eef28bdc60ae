// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/requests.h"

#include <gtest/gtest.h>

#include "tests/support/scrape_values.h"

namespace setu::metrics {
namespace {

struct Snapshot {
  uint64_t admitted = 12, finished = 7, failed = 3, cancelled = 2;
  uint64_t refused_invalid = 4, refused_full = 5, refused_draining = 6;
  bool draining = true;
};

TEST(Requests, EachCountHasItsName) {
  Scrape scrape("m", "decode");
  AddRequests(Snapshot(), scrape);
  const test::ScrapeValues values(scrape);
  EXPECT_EQ(values["setu_requests_admitted_total"], 12);
  EXPECT_EQ(values["setu_requests_finished_total"], 7);
  EXPECT_EQ(values["setu_requests_failed_total"], 3);
  EXPECT_EQ(values["setu_requests_cancelled_total"], 2);
  EXPECT_EQ(values["setu_requests_refused_total{invalid}"], 4);
  EXPECT_EQ(values["setu_requests_refused_total{full}"], 5);
  EXPECT_EQ(values["setu_requests_refused_total{draining}"], 6);
  EXPECT_EQ(values["setu_draining"], 1);
}

}  // namespace
}  // namespace setu::metrics
