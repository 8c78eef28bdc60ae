// SPDX-License-Identifier: Apache-2.0
#include "services/router/snapshot.h"

#include <gtest/gtest.h>

namespace setu::router {
namespace {

constexpr std::chrono::seconds kBetween(5);

TEST(FiguresLine, SaysWhatHappenedBetweenTwoSnapshots) {
  const RouterSnapshot before{.admitted = 10, .finished = 8, .failed = 1, .running = 1};
  RouterSnapshot now = before;
  now.admitted = 24;
  now.finished = 20;
  now.running = 3;
  now.refused_full = 1;
  now.refused_no_workers = 1;
  now.resumes.lost = 1;
  now.queue_length = 1;
  now.prefill_workers = 1;
  now.decode_workers = 2;
  EXPECT_EQ(FiguresLine(before, now, kBetween),
            "3 running, 1 queued, 2.4 finished/s, 0 failed, 2 refused, 1 resumes, 0 retries, "
            "1+2 workers");
}

TEST(FiguresLine, AnIdleRouterHasNone) {
  const RouterSnapshot idle{.admitted = 10, .finished = 10};
  EXPECT_FALSE(FiguresLine(idle, idle, kBetween).has_value());
  RouterSnapshot now = idle;
  now.refused_full = 1;
  EXPECT_TRUE(FiguresLine(idle, now, kBetween).has_value());
}

TEST(FiguresLine, WhatRanAtEitherEndOrOnlyBetweenCounts) {
  const RouterSnapshot idle{.admitted = 10, .finished = 10};
  const RouterSnapshot running{.admitted = 10, .finished = 9, .running = 1};
  const RouterSnapshot later{.admitted = 11, .finished = 11};
  EXPECT_TRUE(FiguresLine(running, idle, kBetween).has_value()) << "it finished";
  EXPECT_TRUE(FiguresLine(running, running, kBetween).has_value());
  EXPECT_TRUE(FiguresLine(idle, later, kBetween).has_value());
}

}  // namespace
}  // namespace setu::router
