// SPDX-License-Identifier: Apache-2.0
// A scrape as a test asks it: values by name.
//
//   const test::ScrapeValues values(scrape);
//   EXPECT_EQ(values["setu_steps_total"], 3);
//   EXPECT_EQ(values["setu_requests_refused_total{full}"], 1);      // of one label
#ifndef SETU_TESTS_SUPPORT_SCRAPE_VALUES_H_
#define SETU_TESTS_SUPPORT_SCRAPE_VALUES_H_

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "common/metrics/catalogue.h"
#include "common/metrics/scrape.h"

namespace setu::test {

class ScrapeValues {
 public:
  explicit ScrapeValues(const metrics::Scrape& scrape) {
    for (const prometheus::MetricFamily& family : scrape.Families()) {
      names_.insert(family.name);
      for (const prometheus::ClientMetric& sample : family.metric) {
        std::string key = family.name;
        for (const auto& label : sample.label) {
          if (label.name != "model" && label.name != "role") key += "{" + label.value + "}";
        }
        EXPECT_FALSE(values_.contains(key)) << key << " is said twice";
        switch (family.type) {
          case prometheus::MetricType::Counter:
            values_[key] = sample.counter.value;
            break;
          case prometheus::MetricType::Gauge:
            values_[key] = sample.gauge.value;
            break;
          default:
            values_[key] = static_cast<double>(sample.histogram.sample_count);
            break;
        }
      }
    }
  }

  // A histogram's value is its count.
  double operator[](const std::string& key) const {
    const auto value = values_.find(key);
    EXPECT_NE(value, values_.end()) << key;
    return value == values_.end() ? 0.0 : value->second;
  }
  const std::set<std::string>& names() const { return names_; }

 private:
  std::map<std::string, double> values_;
  std::set<std::string> names_;
};

// What a process of this role has to say.
inline std::set<std::string> CatalogueNames(const std::string& role) {
  std::set<std::string> names;
  for (const metrics::Metric* metric : metrics::Catalogue()) {
    if (std::string(metric->roles).find(role) != std::string::npos) names.insert(metric->name);
  }
  return names;
}

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_SCRAPE_VALUES_H_
