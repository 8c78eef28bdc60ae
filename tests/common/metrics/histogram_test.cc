// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace setu::metrics {
namespace {

constexpr double kBounds[] = {1.0, 2.0, 5.0};
constexpr Metric kMetric{.name = "setu_test_seconds",
                         .type = Type::kHistogram,
                         .unit = "seconds",
                         .roles = "decode",
                         .help = "Test.",
                         .bounds = kBounds};

std::vector<uint64_t> Buckets(const Histogram& histogram) {
  return {histogram.bucket(0), histogram.bucket(1), histogram.bucket(2), histogram.bucket(3)};
}

TEST(Histogram, ABoundBelongsToTheBucketBelowIt) {
  Histogram histogram(kMetric);
  for (double value : {1.0, 1.5, 2.0, 5.0, 5.1}) histogram.Observe(value);
  EXPECT_EQ(Buckets(histogram), (std::vector<uint64_t>{1, 2, 1, 1}));
  EXPECT_EQ(histogram.count(), 5u);
  EXPECT_DOUBLE_EQ(histogram.sum(), 14.6);
}

TEST(Histogram, TakesExtremesButNotWhatIsNoNumber) {
  Histogram histogram(kMetric);
  histogram.Observe(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(histogram.count(), 0u);
  histogram.Observe(-1.0);
  histogram.Observe(1e300);
  EXPECT_EQ(Buckets(histogram), (std::vector<uint64_t>{1, 0, 0, 1}));
}

TEST(Histogram, ManyAtOnceAreAsManyOneByOne) {
  std::mt19937 random(1);
  Histogram at_once(kMetric), one_by_one(kMetric);
  for (int i = 0; i < 100; ++i) {
    const double value = static_cast<double>(random() % 8);
    const uint64_t times = random() % 5;
    at_once.Observe(value, times);
    for (uint64_t n = 0; n < times; ++n) one_by_one.Observe(value);
  }
  EXPECT_EQ(Buckets(at_once), Buckets(one_by_one));
  EXPECT_EQ(at_once.count(), one_by_one.count());
  EXPECT_DOUBLE_EQ(at_once.sum(), one_by_one.sum());
}

TEST(Histogram, ACopyStaysAsItWas) {
  Histogram histogram(kMetric);
  histogram.Observe(1.0);
  const Histogram snapshot = histogram;
  histogram.Observe(1.0);
  EXPECT_EQ(snapshot.count(), 1u);
  EXPECT_EQ(histogram.count(), 2u);
}

}  // namespace
}  // namespace setu::metrics
