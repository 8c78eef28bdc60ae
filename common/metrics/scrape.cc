// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/scrape.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/metrics/catalogue.h"

namespace setu::metrics {
namespace {

bool Lists(const char* list, absl::string_view word) {
  const std::vector<absl::string_view> words = absl::StrSplit(list, ", ");
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool InCatalogue(const Metric& metric) {
  const auto all = Catalogue();
  return std::find(all.begin(), all.end(), &metric) != all.end();
}

prometheus::MetricType PrometheusType(Type type) {
  if (type == Type::kCounter) return prometheus::MetricType::Counter;
  return type == Type::kGauge ? prometheus::MetricType::Gauge : prometheus::MetricType::Histogram;
}

}  // namespace

Scrape::Scrape(std::string model, std::string role)
    : model_(std::move(model)), role_(std::move(role)) {}

void Scrape::Add(const Metric& metric, double value, absl::string_view label) {
  prometheus::ClientMetric& sample = Sample(metric, label);
  if (metric.type == Type::kCounter) {
    sample.counter.value = value;
  } else {
    sample.gauge.value = value;
  }
}

void Scrape::Add(const Histogram& histogram) {
  prometheus::ClientMetric::Histogram& sample = Sample(histogram.metric(), "").histogram;
  sample.sample_count = histogram.count();
  sample.sample_sum = histogram.sum();
  const auto bounds = histogram.metric().bounds;
  uint64_t below = 0;
  for (size_t i = 0; i <= bounds.size(); ++i) {
    const bool last = i == bounds.size();
    below += histogram.bucket(i);
    sample.bucket.push_back({below, last ? std::numeric_limits<double>::infinity() : bounds[i]});
  }
}

prometheus::ClientMetric& Scrape::Sample(const Metric& metric, absl::string_view label) {
  SETU_CHECK(InCatalogue(metric), "every metric is in the catalogue");
  SETU_CHECK(Lists(metric.roles, role_), "a process reports the metrics of its role");
  SETU_CHECK(Lists(metric.values, label), "a label has a value that its metric declares");
  prometheus::MetricFamily& family = families_[metric.name];
  family.name = metric.name;
  family.help = metric.help;
  family.type = PrometheusType(metric.type);
  prometheus::ClientMetric& sample = family.metric.emplace_back();
  sample.label = {{"model", model_}, {"role", role_}};
  if (!label.empty()) sample.label.push_back({metric.label, std::string(label)});
  return sample;
}

std::vector<prometheus::MetricFamily> Scrape::Families() const {
  std::vector<prometheus::MetricFamily> families;
  for (const auto& [name, family] : families_) families.push_back(family);
  return families;
}

}  // namespace setu::metrics
