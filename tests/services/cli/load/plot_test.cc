// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

namespace setu::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The d of each line's path, in order.
std::vector<std::string> Paths(const std::string& svg) {
  std::vector<std::string> paths;
  for (size_t at = 0; (at = svg.find(" d=\"", at)) != std::string::npos;) {
    at += 4;
    paths.push_back(svg.substr(at, svg.find('"', at) - at));
  }
  return paths;
}

TEST(Plot, PutsPointsByTheirValues) {
  Plot plot = {.title = "t", .x_label = "x", .y_label = "y", .lines = {}};
  plot.lines.push_back({"a", {{0, 0}, {5, 5}, {10, 10}}});
  double x[3], y[3];
  const std::vector<std::string> paths = Paths(plot.Svg());
  ASSERT_EQ(paths.size(), 1u);
  ASSERT_EQ(std::sscanf(paths[0].c_str(), "M%lf %lfL%lf %lfL%lf %lf", &x[0], &y[0], &x[1], &y[1],
                        &x[2], &y[2]),
            6);
  EXPECT_NEAR(x[1], (x[0] + x[2]) / 2, 0.11);
  EXPECT_NEAR(y[1], (y[0] + y[2]) / 2, 0.11);
  EXPECT_LT(y[2], y[0]) << "up is more";
}

TEST(Plot, OfALogarithmPutsEqualRatiosEquallyFar) {
  Plot plot = {.title = "t", .x_label = "x", .y_label = "y", .x_scale = Scale::kLog, .lines = {}};
  plot.lines.push_back({"a", {{1, 1}, {10, 1}, {100, 1}}});
  double x[3], y[3];
  ASSERT_EQ(std::sscanf(Paths(plot.Svg())[0].c_str(), "M%lf %lfL%lf %lfL%lf %lf", &x[0], &y[0],
                        &x[1], &y[1], &x[2], &y[2]),
            6);
  EXPECT_NEAR(x[1] - x[0], x[2] - x[1], 0.11);
}

TEST(Plot, BreaksALineWhereThereIsNoValue) {
  Plot plot = {.title = "t", .x_label = "x", .y_label = "y", .y_scale = Scale::kLog, .lines = {}};
  plot.lines.push_back({"a", {{0, 1}, {1, 2}, {2, std::nan("")}, {3, 4}, {4, 0}, {5, 1}}});
  const std::string path = Paths(plot.Svg())[0];
  EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 3);
  EXPECT_THAT(path, Not(HasSubstr("nan")));
  EXPECT_THAT(path, Not(HasSubstr("inf")));
}

TEST(Plot, OfNothingIsEmpty) {
  Plot plot = {.title = "t", .x_label = "x", .y_label = "y", .y_scale = Scale::kLog, .lines = {}};
  EXPECT_EQ(plot.Svg(), "");
  plot.lines.push_back({"a", {{0, 0}, {1, -1}}});
  EXPECT_EQ(plot.Svg(), "");
}

TEST(Plot, OfOneValueHasAnAxis) {
  for (const Scale scale : {Scale::kLinear, Scale::kLog}) {
    Plot plot = {.title = "<t>", .x_label = "x", .y_label = "y", .y_scale = scale, .lines = {}};
    plot.lines.push_back({"a & b", {{0, 10}}});
    EXPECT_THAT(plot.Svg(), HasSubstr("a &amp; b"));
    EXPECT_THAT(plot.Svg(), HasSubstr("&lt;t&gt;"));
    EXPECT_THAT(plot.Svg(), Not(HasSubstr("nan")));
  }
}

}  // namespace
}  // namespace setu::cli
