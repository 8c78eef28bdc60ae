// SPDX-License-Identifier: Apache-2.0
#include "services/router/change_lines.h"

#include <gtest/gtest.h>

namespace setu::router {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const TimePoint kStart{hours(1)};

TEST(ChangeLines, OneForEachChangeHoweverOftenItIsLookedAt) {
  ChangeLines lines;
  EXPECT_EQ(lines.Next(kStart, "away", "it is away: refused"), "it is away: refused");
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(lines.Next(kStart + seconds(i), "away", "it is away: timed out"), std::nullopt);
  }
  EXPECT_EQ(lines.Next(kStart + seconds(100), "back", "it is back"), "it is back");
  EXPECT_EQ(lines.Next(kStart + seconds(101), "away", "it is away"), "it is away");
}

// Twenty changes a second for an hour.
TEST(ChangeLines, WhatChangesAllTheTimeIsBounded) {
  ChangeLines lines;
  int64_t written = 0;
  for (TimePoint now = kStart; now < kStart + hours(1); now += milliseconds(100)) {
    written += lines.Next(now, "away", "away").has_value();
    written += lines.Next(now + milliseconds(50), "back", "back").has_value();
  }
  EXPECT_LE(written, ChangeLines::kBurst + hours(1) / ChangeLines::kPause);
  EXPECT_GE(written, hours(1) / ChangeLines::kPause / 2);
}

TEST(ChangeLines, TheNewestStateIsToldInTheEndWithWhatHadNoLine) {
  ChangeLines lines;
  TimePoint now = kStart;
  for (int i = 0; i < ChangeLines::kBurst; ++i) {
    EXPECT_TRUE(lines.Next(now, i % 2 == 0 ? "away" : "back", "x").has_value());
  }
  EXPECT_EQ(lines.Next(now, "away", "away"), std::nullopt);
  EXPECT_EQ(lines.Next(now, "back", "back"), std::nullopt);
  EXPECT_EQ(lines.Next(now, "away", "away"), std::nullopt);
  now += ChangeLines::kPause;
  EXPECT_EQ(lines.Next(now, "away", "away"), "away (2 changes before had no line)");
  EXPECT_EQ(lines.Next(now + ChangeLines::kPause, "back", "back"), "back");
}

TEST(ChangeLines, WhatChangedBackInBetweenNeedsNone) {
  ChangeLines lines;
  for (int i = 0; i < ChangeLines::kBurst; ++i)
    lines.Next(kStart, i % 2 == 0 ? "away" : "back", "x");
  EXPECT_EQ(lines.Next(kStart, "away", "away"), std::nullopt);
  EXPECT_EQ(lines.Next(kStart + hours(1), "back", "back"), std::nullopt);
}

}  // namespace
}  // namespace setu::router
