// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/meter.h"

#include <gtest/gtest.h>

#include "tests/common/roofline/model_fixture.h"

namespace setu::roofline {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MeterTest : public ::testing::Test {
 protected:
  // Steps of one row for as long as predicted, each at its end.
  void Step(int count) {
    const StepRows rows = DecodeRows(1, 512);
    const Duration took(static_cast<int64_t>(1e9 * model_.Terms(rows).seconds()));
    for (int i = 0; i < count; ++i) {
      now_ += took;
      meter_.CountStep(rows, took);
      meter_.Look(now_, false);
    }
  }

  const StepModel model_ = BillionModel();
  TimePoint now_{seconds(1000)};
  Meter meter_{model_, now_};
};

TEST_F(MeterTest, JudgesOnceAWindowHasPassed) {
  Step(3);  // some 55 ms each
  EXPECT_EQ(meter_.verdict().limit, Limit::kIdle) << "no window has passed";
  Step(30);
  EXPECT_EQ(meter_.verdict().limit, Limit::kMemoryBound);
  EXPECT_GT(meter_.verdict().bandwidth_share, 0.9);
  EXPECT_LE(meter_.verdict().bandwidth_share, 1.0);
}

TEST_F(MeterTest, KeepsTheWorkOfAllSteps) {
  Step(100);
  EXPECT_EQ(meter_.work().kv_read_bytes,
            100 * WorkOf(model_.shape, DecodeRows(1, 512)).kv_read_bytes);
}

// The owner sleeps until an event or its timer: without one, the last verdict would stay for good.
TEST_F(MeterTest, WantsToBeLookedAtUntilItIsIdle) {
  EXPECT_EQ(meter_.next_look(), std::nullopt);
  Step(30);
  ASSERT_NE(meter_.verdict().limit, Limit::kIdle);
  for (int looks = 0; meter_.next_look(); ++looks) {
    ASSERT_LT(looks, 3);
    ASSERT_GT(*meter_.next_look(), now_ - Meter::kWindow);
    now_ = std::max(now_, *meter_.next_look());
    meter_.Look(now_, false);
  }
  EXPECT_EQ(meter_.verdict().limit, Limit::kIdle);
}

TEST_F(MeterTest, SaysAtOnceWhetherPromptsWaitElsewhere) {
  meter_.Look(now_, true);
  EXPECT_EQ(meter_.verdict().limit, Limit::kStarved);
  EXPECT_EQ(meter_.next_look(), std::nullopt) << "only an event can change that";
  meter_.Look(now_, false);
  EXPECT_EQ(meter_.verdict().limit, Limit::kIdle);
}

// After an hour of sleep a step of three seconds: it is not lost in that hour.
TEST_F(MeterTest, JudgesWorkByTheTimeSinceItBegan) {
  now_ += std::chrono::hours(1);
  const StepRows rows = DecodeRows(1, 512);
  meter_.CountStep(rows, seconds(3));
  meter_.Look(now_, false);
  EXPECT_EQ(meter_.verdict().limit, Limit::kMemoryBound);
}

TEST_F(MeterTest, SaysLinkBoundWhereComputedKvWaitsLongest) {
  Step(5);
  now_ += seconds(2);
  meter_.CountLinkWait(milliseconds(1900));
  meter_.Look(now_, false);
  EXPECT_EQ(meter_.verdict().limit, Limit::kLinkBound);
}

TEST_F(MeterTest, KeepsTheFastestTransfer) {
  EXPECT_EQ(FiguresOf(meter_).link_bytes_per_second, 0);
  meter_.CountTransfer(2'000'000, milliseconds(10));
  meter_.CountTransfer(1'000'000, milliseconds(10));
  meter_.CountTransfer(0, Duration::zero());
  EXPECT_DOUBLE_EQ(FiguresOf(meter_).link_bytes_per_second, 200e6);
}

TEST_F(MeterTest, TakesFromAnotherProbeWhatIsMore) {
  meter_.Raise({.bytes_per_second = 30e9, .operations_per_second = 5e11});
  EXPECT_EQ(meter_.peaks().bytes_per_second, 30e9);
  EXPECT_EQ(meter_.peaks().operations_per_second, model_.peaks.operations_per_second);
  EXPECT_EQ(meter_.peaks().weight_bytes, model_.peaks.weight_bytes);
}

TEST_F(MeterTest, RaisesAPeakThatAStepBeats) {
  const StepRows rows = DecodeRows(1, 512);
  const StepWork work = WorkOf(model_.shape, rows);
  meter_.CountStep(rows, milliseconds(10));
  EXPECT_DOUBLE_EQ(meter_.peaks().bytes_per_second, work.bytes() / 0.010);
  EXPECT_DOUBLE_EQ(meter_.peaks().operations_per_second, model_.peaks.operations_per_second);
}

}  // namespace
}  // namespace setu::roofline
