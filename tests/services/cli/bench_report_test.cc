// SPDX-License-Identifier: Apache-2.0
#include "services/cli/bench_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace setu::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Percentiles, AreNearestRank) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Percentiles p = PercentilesOf(values);
  EXPECT_EQ(p.p50, 50);
  EXPECT_EQ(p.p90, 90);
  EXPECT_EQ(p.p99, 99);
  EXPECT_EQ(p.max, 100);
  EXPECT_EQ(p.mean, 50.5);
}

TEST(Percentiles, OfOneValueAreThatValue) {
  const Percentiles p = PercentilesOf({7});
  EXPECT_EQ(p.p50, 7);
  EXPECT_EQ(p.p99, 7);
}

TEST(Percentiles, OfNothingAreZero) { EXPECT_EQ(PercentilesOf({}).max, 0); }

std::vector<BenchSample> TwoGoodOneRefused() {
  BenchSample good{.first_token = milliseconds(10),
                   .between = {milliseconds(2), milliseconds(4)},
                   .total = milliseconds(16),
                   .prompt_tokens = 5,
                   .generated_tokens = 3};
  BenchSample refused{
      .status = "RESOURCE_EXHAUSTED", .error = "the queue is full", .total = milliseconds(1)};
  return {good, refused, good};
}

TEST(BenchReport, CountsOnlyWhatEndedOk) {
  const BenchReport report = Summarise(TwoGoodOneRefused(), seconds(2));
  EXPECT_EQ(report.by_status.at("OK"), 2);
  EXPECT_EQ(report.by_status.at("RESOURCE_EXHAUSTED"), 1);
  EXPECT_EQ(report.generated_tokens, 6);
  EXPECT_EQ(report.generated_per_second(), 3.0);
  EXPECT_EQ(report.between.max, 4);
  EXPECT_EQ(report.total.p99, 16);
}

TEST(BenchReport, IsOkWhereOnlyAFullQueueRefused) {
  std::vector<BenchSample> samples = TwoGoodOneRefused();
  EXPECT_TRUE(Summarise(samples, seconds(2)).ok());
  samples.push_back({.status = "UNAVAILABLE"});
  EXPECT_FALSE(Summarise(samples, seconds(2)).ok());
  EXPECT_FALSE(Summarise({{.status = "RESOURCE_EXHAUSTED"}}, seconds(2)).ok());
}

TEST(BenchReport, HasNoTableWhereNothingEndedOk) {
  const std::string text =
      Summarise({{.status = "RESOURCE_EXHAUSTED", .error = "full"}}, seconds(2)).Text();
  EXPECT_NE(text.find("no request ended OK"), std::string::npos);
  EXPECT_EQ(text.find("TTFT"), std::string::npos);
  EXPECT_NE(Summarise({}, seconds(2)).Text().find("no request ended OK"), std::string::npos);
}

TEST(BenchReport, JsonSaysWhatTheTextSays) {
  const BenchReport report = Summarise(TwoGoodOneRefused(), seconds(2));
  const auto json = nlohmann::json::parse(report.Json(), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["requests"]["OK"], 2);
  EXPECT_EQ(json["time_to_first_token"]["p50_ms"], 10.0);
  EXPECT_NE(report.Text().find("1 RESOURCE_EXHAUSTED"), std::string::npos);
  EXPECT_NE(report.Text().find("\nRESOURCE_EXHAUSTED: the queue is full\n"), std::string::npos);
}

}  // namespace
}  // namespace setu::cli
