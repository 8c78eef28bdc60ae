// SPDX-License-Identifier: Apache-2.0
#include "services/decode/snapshot.h"

#include <gtest/gtest.h>

#include <chrono>

namespace setu::decode {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(FiguresLine, SaysWhatHappenedBetweenTwoSnapshots) {
  Snapshot before{.blocks_total = 100, .steps = 10, .tokens = 50, .busy = seconds(1)};
  Snapshot now = before;
  now.steps += 100;
  now.tokens += 400;
  now.at += seconds(5);
  now.busy += seconds(4);
  now.kv_bytes_received += 5'000'000;
  now.running = 4;
  now.blocks_held = 30;
  now.blocks_promised = 20;
  now.preemptions = 2;
  EXPECT_EQ(FiguresLine(before, now),
            "80 tok/s, batch 4.0, busy 80 %, 4 running, KV 1.0 MB/s, 50/100 blocks free, "
            "2 preempted");
}

TEST(FiguresLine, AnIdleWorkerHasNone) {
  const TimePoint at{seconds(5)};
  EXPECT_FALSE(FiguresLine({}, {.at = at}).has_value());
  EXPECT_FALSE(FiguresLine({}, {.steps = 1, .tokens = 1, .at = at, .busy = milliseconds(20)}))
      << "canary";
  EXPECT_TRUE(FiguresLine({}, {.steps = 1, .tokens = 1, .at = at, .busy = milliseconds(30)}));
  EXPECT_EQ(FiguresLine({}, {.running = 1, .at = at}),
            "0 tok/s, batch 0.0, busy 0 %, 1 running, KV 0.0 MB/s, 0/0 blocks free, 0 preempted")
      << "it waits for prefill; and nothing is divided by zero";
}

TEST(Report, SaysHowOftenPrefixesWereFound) {
  const auto report = Report({.prefix_tokens_asked = 48, .prefix_tokens_known = 32});
  EXPECT_EQ(report.prefix_tokens_asked(), 48u);
  EXPECT_EQ(report.prefix_tokens_known(), 32u);
}

}  // namespace
}  // namespace setu::decode
