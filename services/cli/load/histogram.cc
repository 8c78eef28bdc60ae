// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/histogram.h"

#include <algorithm>
#include <cmath>

namespace setu::cli {
namespace {

constexpr double kLeastMs = 1e-3;    // what is shorter counts as this
constexpr double kMostMs = 86400e3;  // and what is longer as this: no deadline is
constexpr double kBucketsPerOctave = 100;

size_t BucketOf(double ms) {
  const double clamped = std::clamp(ms, kLeastMs, kMostMs);
  return static_cast<size_t>(std::log2(clamped / kLeastMs) * kBucketsPerOctave);
}

}  // namespace

void LatencyHistogram::Record(double ms, int64_t times) {
  const size_t bucket = BucketOf(ms);
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  buckets_[bucket] += times;
  least_ = count_ == 0 ? ms : std::min(least_, ms);
  most_ = std::max(most_, ms);
  count_ += times;
  sum_ += ms * static_cast<double>(times);
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  if (other.count_ == 0) return;
  buckets_.resize(std::max(buckets_.size(), other.buckets_.size()));
  for (size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  least_ = count_ == 0 ? other.least_ : std::min(least_, other.least_);
  most_ = std::max(most_, other.most_);
  count_ += other.count_;
  sum_ += other.sum_;
}

// Never outside of what was recorded, so that a single value is told as it is.
double LatencyHistogram::MiddleOf(size_t bucket) const {
  const double middle =
      kLeastMs * std::exp2((static_cast<double>(bucket) + 0.5) / kBucketsPerOctave);
  return std::clamp(middle, least_, most_);
}

double LatencyHistogram::Percentile(double share) const {
  const auto rank = static_cast<int64_t>(std::ceil(share * static_cast<double>(count_)));
  int64_t below = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    below += buckets_[i];
    if (below >= std::max<int64_t>(rank, 1)) return MiddleOf(i);
  }
  return 0;
}

std::vector<std::pair<double, double>> LatencyHistogram::Cumulative() const {
  std::vector<std::pair<double, double>> points;
  int64_t below = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] == 0) continue;
    below += buckets_[i];
    points.emplace_back(MiddleOf(i), static_cast<double>(below) / static_cast<double>(count_));
  }
  return points;
}

}  // namespace setu::cli
