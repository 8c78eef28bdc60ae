// SPDX-License-Identifier: Apache-2.0
// The samples of one scrape: whoever has a snapshot adds what it says.
//
//   void Report(const Snapshot& snapshot, metrics::Scrape& scrape) {
//     scrape.Add(catalogue::kSteps, snapshot.steps);
//     scrape.Add(catalogue::kChoicesFinished, snapshot.stopped, "stop");
//     scrape.Add(snapshot.first_token);                                  // a histogram
//   }
#ifndef SETU_COMMON_METRICS_SCRAPE_H_
#define SETU_COMMON_METRICS_SCRAPE_H_

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/metrics/histogram.h"
#include "common/metrics/metric.h"

namespace setu::metrics {

class Scrape {
 public:
  // Labels of every sample: the served model's name and the role of this process.
  Scrape(std::string model, std::string role);

  // Only metrics of the catalogue, of this role, with the values they declare: labels stay few.
  void Add(const Metric& metric, double value, absl::string_view label = "");
  void Add(const Histogram& histogram);

  std::vector<prometheus::MetricFamily> Families() const;

 private:
  prometheus::ClientMetric& Sample(const Metric& metric, absl::string_view label);

  const std::string model_;
  const std::string role_;
  std::map<std::string, prometheus::MetricFamily> families_;  // by name
};

}  // namespace setu::metrics

#endif  // SETU_COMMON_METRICS_SCRAPE_H_
