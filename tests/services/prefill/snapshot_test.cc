// SPDX-License-Identifier: Apache-2.0
#include "services/prefill/snapshot.h"

#include <gtest/gtest.h>

namespace setu::prefill {
namespace {

TEST(SnapshotTest, FiguresAreOfTheTimeBetween) {
  using std::chrono_literals::operator""ms;
  using std::chrono_literals::operator""s;
  Snapshot before, now;
  before.tokens = 1000;
  before.busy = 1s;
  before.kv_bytes = 10'000'000;
  now.tokens = 5060;
  now.at = before.at + 5s;
  now.busy = 5850ms;
  now.kv_bytes = 72'500'000;
  now.running = 3;
  now.queued = 5;
  now.queued_tokens = 4096;
  now.blocks_free = 210;
  now.blocks_total = 256;
  EXPECT_EQ(FiguresLine(before, now),
            "812 tok/s, busy 97 %, 3 running, 5 queued (4096 tok), KV 12.5 MB/s, "
            "210/256 blocks free");
}

TEST(SnapshotTest, AnIdleWorkerHasNoLine) {
  using std::chrono_literals::operator""ms;
  using std::chrono_literals::operator""s;
  Snapshot now;
  now.at += 5s;
  now.steps = now.tokens = 1;  // a router's canary
  now.busy = 20ms;
  EXPECT_FALSE(FiguresLine({}, now).has_value());
  now.running = 1;
  EXPECT_TRUE(FiguresLine({}, now).has_value()) << "it may wait for decode";
  Snapshot later = now;
  later.at += 5s;
  EXPECT_TRUE(FiguresLine(now, later).has_value());
  now.running = 0;
  now.busy = 30ms;
  EXPECT_TRUE(FiguresLine({}, now).has_value());
}

TEST(SnapshotTest, RoutersHearHowOftenPrefixesWereFound) {
  const auto report = Report({.prefix_tokens_asked = 48, .prefix_tokens_known = 32}, 4);
  EXPECT_EQ(report.prefix_tokens_asked(), 48u);
  EXPECT_EQ(report.prefix_tokens_known(), 32u);
}

}  // namespace
}  // namespace setu::prefill
