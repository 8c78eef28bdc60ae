// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "services/cli/load/draws.h"

namespace setu::cli {
namespace {

constexpr double kError = 0.0035;  // of a percentile, relative

TEST(LatencyHistogram, PercentilesAreNearestRank) {
  LatencyHistogram h;
  for (int i = 100; i >= 1; --i) h.Record(i);
  EXPECT_NEAR(h.Percentile(0.5), 50, 50 * kError);
  EXPECT_NEAR(h.Percentile(0.9), 90, 90 * kError);
  EXPECT_NEAR(h.Percentile(0.99), 99, 99 * kError);
  EXPECT_NEAR(h.Percentile(1), 100, 100 * kError);
  EXPECT_EQ(h.most(), 100);
  EXPECT_EQ(h.mean(), 50.5);
  EXPECT_EQ(h.count(), 100);
}

TEST(LatencyHistogram, OfOneValueIsThatValue) {
  LatencyHistogram h;
  h.Record(7.123, 3);
  EXPECT_EQ(h.Percentile(0.5), 7.123);
  EXPECT_EQ(h.Percentile(0.99), 7.123);
  EXPECT_EQ(h.count(), 3);
}

TEST(LatencyHistogram, OfNothingIsZero) {
  EXPECT_EQ(LatencyHistogram().Percentile(0.99), 0);
  EXPECT_EQ(LatencyHistogram().mean(), 0);
  EXPECT_TRUE(LatencyHistogram().Cumulative().empty());
}

TEST(LatencyHistogram, IsCloseToTheExactPercentilesOverSixDecades) {
  LatencyHistogram h;
  std::vector<double> values;
  Draws draws(1, DrawsOf::kShape, 0);
  for (int i = 0; i < 50'000; ++i) values.push_back(std::exp(draws.Normal() * 3 + 2));
  for (double value : values) h.Record(value);
  std::sort(values.begin(), values.end());
  for (double share : {0.01, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const double exact =
        values[static_cast<size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1];
    EXPECT_NEAR(h.Percentile(share), exact, exact * kError) << share;
  }
}

TEST(LatencyHistogram, TakesWhatNoClockShows) {
  LatencyHistogram h;
  for (double odd : {0.0, -1.0, 1e-9, 1e12}) h.Record(odd);
  EXPECT_EQ(h.count(), 4);
  EXPECT_EQ(h.most(), 1e12);
}

TEST(LatencyHistogram, MergedIsAsIfAllWereInOne) {
  LatencyHistogram all, one, two;
  for (int i = 1; i <= 100; ++i) {
    all.Record(i);
    (i % 3 == 0 ? one : two).Record(i);
  }
  one.Merge(two);
  one.Merge(LatencyHistogram());
  EXPECT_EQ(one.count(), all.count());
  EXPECT_EQ(one.mean(), all.mean());
  EXPECT_EQ(one.Cumulative(), all.Cumulative());
}

TEST(LatencyHistogram, CumulativeRisesToOne) {
  LatencyHistogram h;
  h.Record(1, 3);
  h.Record(100);
  ASSERT_EQ(h.Cumulative().size(), 2u);
  EXPECT_NEAR(h.Cumulative()[0].first, 1, kError);
  EXPECT_EQ(h.Cumulative()[0].second, 0.75);
  EXPECT_EQ(h.Cumulative()[1].second, 1);
}

}  // namespace
}  // namespace setu::cli
