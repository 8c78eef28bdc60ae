// SPDX-License-Identifier: Apache-2.0
#include "common/worker/roofline_report.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace setu::worker {
namespace {

roofline::Figures SomeFigures(roofline::Limit limit) {
  return {.verdict = {.limit = limit,
                      .bandwidth_share = 0.75,
                      .arithmetic_share = 0.25,
                      .intensity = 2.0},
          .peaks = {.bytes_per_second = 20e9,
                    .operations_per_second = 800e9,
                    .weight_bytes = 63,
                    .l3_bytes = 32},
          .link_bytes_per_second = 3e9,
          .bytes = 1e12,
          .operations = 2e12};
}

TEST(RooflineReport, ToRoutersHasALimitForEachVerdict) {
  std::set<v1::Limit> limits;
  for (const roofline::Limit limit : roofline::kLimits) {
    limits.insert(ToProto(SomeFigures(limit)).limit());
  }
  EXPECT_EQ(limits.size(), roofline::kLimits.size());
  EXPECT_FALSE(limits.contains(v1::LIMIT_UNSPECIFIED));
}

TEST(RooflineReport, ToRoutersHasTheFigures) {
  const v1::Roofline message = ToProto(SomeFigures(roofline::Limit::kMemoryBound));
  EXPECT_EQ(message.limit(), v1::LIMIT_MEMORY_BOUND);
  EXPECT_EQ(message.bandwidth_share(), 0.75);
  EXPECT_EQ(message.arithmetic_share(), 0.25);
  EXPECT_EQ(message.intensity(), 2.0);
  EXPECT_EQ(message.ridge(), 40.0);
  EXPECT_EQ(message.link_bytes_per_second(), 3e9);
  EXPECT_TRUE(message.cache_resident());
}

TEST(RooflineReport, ToPrometheusSetsOneLimit) {
  metrics::Scrape scrape("m", "decode");
  AddRoofline(SomeFigures(roofline::Limit::kComputeBound), scrape);
  std::map<std::string, double> limits;
  for (const prometheus::MetricFamily& family : scrape.Families()) {
    if (family.name != "setu_roofline_limit") continue;
    for (const prometheus::ClientMetric& sample : family.metric) {
      for (const auto& label : sample.label) {
        if (label.name == "reason") limits[label.value] = sample.gauge.value;
      }
    }
  }
  EXPECT_EQ(limits.size(), roofline::kLimits.size());
  for (const auto& [reason, value] : limits) EXPECT_EQ(value, reason == "compute-bound" ? 1 : 0);
}

}  // namespace
}  // namespace setu::worker
