// SPDX-License-Identifier: Apache-2.0
#include "services/cli/engine_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace setu::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// 10 GB/s and 1000 GFLOP/s: the ridge is at 100 operations per byte.
EngineReport TwoRows() {
  EngineReport report = {.cpu = "A <CPU> & more",
                         .huge_pages = "madvise",
                         .numerics = "int8-g32",
                         .isa = "avx512",
                         .model = "m",
                         .quantization = "Q8_0",
                         .cores = 2,
                         .threads = 2,
                         .weight_bytes = 1 << 30,
                         .peaks = {.bytes_per_second = 10e9,
                                   .operations_per_second = 1000e9,
                                   .weight_bytes = 1 << 30,
                                   .l3_bytes = 32 << 20}};
  report.rows.push_back({.name = "decode x1",
                         .tokens = 1,
                         .rounds = {{0.1, 12.5e9}, {0.2, 10e9}, {0.4, 2e9}},
                         .work = {.weight_bytes = 1e9, .product_operations = 2e9},
                         .terms = {.memory = 0.1, .compute = 0.01}});
  report.rows.push_back({.name = "prefill 512",
                         .tokens = 512,
                         .rounds = {{2.0, 5e9}},
                         .work = {.weight_bytes = 1e9, .product_operations = 1000e9},
                         .terms = {.memory = 0.1, .compute = 1.0}});
  return report;
}

TEST(EngineReport, SharesAreOfTheMedianRoundAndOfTheNearerRoof) {
  const EngineReport report = TwoRows();
  const EngineRow& decode = report.rows[0];
  EXPECT_DOUBLE_EQ(decode.tokens_per_second(), 5);
  EXPECT_DOUBLE_EQ(decode.bandwidth(), 5e9);
  EXPECT_DOUBLE_EQ(report.RoofShare(decode), 0.5);          // memory holds it
  EXPECT_DOUBLE_EQ(report.RoofShare(report.rows[1]), 0.5);  // arithmetic does
}

TEST(EngineReport, ARoundThatBeatsTheProbeIsThePeak) {
  EngineReport report = TwoRows();
  report.rows[0].rounds = {{0.05}, {0.1}, {0.2}};
  report.Raise();
  EXPECT_DOUBLE_EQ(report.peaks.bytes_per_second, 20e9);
  EXPECT_DOUBLE_EQ(report.peaks.operations_per_second, 1000e9);
  EXPECT_DOUBLE_EQ(report.RoofShare(report.rows[0]), 0.5);
}

TEST(EngineReport, SharesBesideReadsAreOfEachRoundsReads) {
  EngineReport report = TwoRows();
  EXPECT_DOUBLE_EQ(report.RoofShareBeside(report.rows[0]), 0.8);  // of 0.5, 0.8 and 1
  EXPECT_DOUBLE_EQ(report.RoofShareBeside(report.rows[1]), 0.5);  // arithmetic's roof stays
  report.rows[0].rounds = {{0.1, 5e9}};
  EXPECT_DOUBLE_EQ(report.RoofShareBeside(report.rows[0]), 1);  // faster than reading
}

TEST(EngineReport, TheTableNamesRateSharePredictionAndLimit) {
  const std::string text = TwoRows().Text();
  EXPECT_THAT(
      text,
      ContainsRegex("decode x1 +5.0 +10.0 +200.00 +5.00 +50.0% .* 50.0% +80.0% +10.0  memory-b"));
  EXPECT_THAT(text, ContainsRegex("prefill 512 +256.0 .* 512.0  compute-bound"));
  EXPECT_THAT(TwoRows().Head(), HasSubstr("10.0 GB/s, 1000.0 GFLOP/s, ridge 100.0 FLOP per byte"));
}

TEST(EngineReport, CsvHasARowPerCaseWithEveryColumn) {
  const std::string csv = TwoRows().Csv();
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), ','), 3 * 17);
}

TEST(EngineReport, JsonCanBeRead) {
  const auto json = nlohmann::json::parse(TwoRows().Json());
  EXPECT_EQ(json["cases"][0]["name"], "decode x1");
  EXPECT_EQ(json["cases"][0]["tokens_per_second"], 5.0);
  EXPECT_EQ(json["cases"][0]["roof_share"], 0.5);
  EXPECT_DOUBLE_EQ(json["cases"][0]["roof_share_beside"].get<double>(), 0.8);
  EXPECT_EQ(json["peaks"]["ridge"], 100.0);
  EXPECT_EQ(json["machine"]["l3_bytes"], 32 << 20);
}

TEST(RooflinePlot, ShowsBothRoofsTheRidgeAndAPointPerCase) {
  const std::string svg = RooflinePlot(TwoRows());
  EXPECT_THAT(svg, HasSubstr("10.0 GB/s"));
  EXPECT_THAT(svg, HasSubstr("1000 GFLOP/s"));
  EXPECT_THAT(svg, HasSubstr("ridge 100 FLOP per byte"));
  EXPECT_THAT(svg, HasSubstr("decode x1: 5 tokens/s, 50 %"));
  EXPECT_THAT(svg, HasSubstr("prefill 512: 256 tokens/s, 50 %"));
  EXPECT_THAT(svg, HasSubstr("A &lt;CPU&gt; &amp; more"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(RooflinePlot, APointIsBelowItsRoofByItsShare) {
  // On logarithmic axes, half of the roof is as far below it for every point.
  const std::string svg = RooflinePlot(TwoRows());
  std::vector<double> drops;
  for (size_t at = 0; (at = svg.find("class=\"drop\"", at)) != std::string::npos; ++at) {
    double x1, y1, x2, y2;
    ASSERT_EQ(
        std::sscanf(svg.c_str() + at, "class=\"drop\" x1=\"%lf\" y1=\"%lf\" x2=\"%lf\" y2=\"%lf\"",
                    &x1, &y1, &x2, &y2),
        4);
    EXPECT_EQ(x1, x2);
    drops.push_back(y1 - y2);
  }
  ASSERT_EQ(drops.size(), 2u);
  EXPECT_GT(drops[0], 10);
  EXPECT_NEAR(drops[0], drops[1], 0.2);
}

}  // namespace
}  // namespace setu::cli
