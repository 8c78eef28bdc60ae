// SPDX-License-Identifier: Apache-2.0
// What is said about a metric once, in the catalogue.
#ifndef SETU_COMMON_METRICS_METRIC_H_
#define SETU_COMMON_METRICS_METRIC_H_

#include <cstdint>
#include <span>

namespace setu::metrics {

// Counters only grow; gauges come from a snapshot, never from inc and dec.
enum class Type : uint8_t { kCounter, kGauge, kHistogram };

struct Metric {
  const char* name;
  Type type;
  const char* unit;
  const char* roles;  // the processes that report it: "router, prefill, decode"
  const char* label = "reason";
  const char* values = "";  // of that label: "full, timeout"; "": no such label
  const char* help;
  std::span<const double> bounds = {};  // a histogram's, ascending
};

}  // namespace setu::metrics

#endif  // SETU_COMMON_METRICS_METRIC_H_
