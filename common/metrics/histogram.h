// SPDX-License-Identifier: Apache-2.0
// Counts of a histogram in a fixed size, so that an owner observes without allocating and copies
// the whole into each snapshot it publishes. One thread.
//
//   Histogram first_token(catalogue::kTimeToFirstToken);
//   first_token.Observe(0.035);
//   snapshot.first_token = first_token;
#ifndef SETU_COMMON_METRICS_HISTOGRAM_H_
#define SETU_COMMON_METRICS_HISTOGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/metrics/metric.h"

namespace setu::metrics {

class Histogram {
 public:
  static constexpr size_t kMaxBounds = 24;

  // A metric of type histogram; it must outlive this, as those of the catalogue do.
  explicit Histogram(const Metric& metric);

  // `times` observations of the same value; a value that is no number is not counted.
  void Observe(double value, uint64_t times = 1);

  const Metric& metric() const { return *metric_; }
  uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  // Observations of at most bounds[i] and above bounds[i - 1]; the last are above all bounds.
  uint64_t bucket(size_t i) const { return buckets_[i]; }

 private:
  const Metric* metric_;
  std::array<uint64_t, kMaxBounds + 1> buckets_{};
  uint64_t count_ = 0;
  double sum_ = 0.0;
};

}  // namespace setu::metrics

#endif  // SETU_COMMON_METRICS_HISTOGRAM_H_
