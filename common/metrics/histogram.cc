// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/histogram.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace setu::metrics {

Histogram::Histogram(const Metric& metric) : metric_(&metric) {
  SETU_CHECK(metric.type == Type::kHistogram, "only a histogram has buckets");
  SETU_CHECK(metric.bounds.size() <= kMaxBounds, "a histogram has a fixed size");
}

void Histogram::Observe(double value, uint64_t times) {
  if (std::isnan(value)) return;
  const auto bounds = metric_->bounds;
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
  buckets_[static_cast<size_t>(bucket)] += times;
  count_ += times;
  sum_ += value * static_cast<double>(times);
}

}  // namespace setu::metrics
