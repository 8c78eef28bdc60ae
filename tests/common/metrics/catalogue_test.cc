// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "common/metrics/histogram.h"

namespace setu::metrics {
namespace {

TEST(Catalogue, NamesFollowPrometheusRulesAndAreUnique) {
  std::set<std::string> names;
  for (const Metric* metric : Catalogue()) {
    const std::string name = metric->name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(std::regex_match(name, std::regex("setu_[a-z0-9_]+"))) << name;
    EXPECT_EQ(name.ends_with("_total"), metric->type == Type::kCounter) << name;
    if (std::string(metric->unit) == "seconds") {
      EXPECT_NE(name.find("_seconds"), std::string::npos) << name;
    }
  }
  EXPECT_GT(names.size(), 20u);
}

TEST(Catalogue, EveryMetricSaysWhatItIs) {
  for (const Metric* metric : Catalogue()) {
    EXPECT_STRNE(metric->unit, "") << metric->name;
    EXPECT_STRNE(metric->roles, "") << metric->name;
    EXPECT_TRUE(std::string(metric->help).ends_with(".")) << metric->name;
    EXPECT_EQ(std::string(metric->help).find('|'), std::string::npos) << "breaks the table";
  }
}

TEST(Catalogue, HistogramsHaveAscendingBounds) {
  for (const Metric* metric : Catalogue()) {
    EXPECT_EQ(metric->bounds.empty(), metric->type != Type::kHistogram) << metric->name;
    EXPECT_LE(metric->bounds.size(), Histogram::kMaxBounds) << metric->name;
    EXPECT_EQ(std::adjacent_find(metric->bounds.begin(), metric->bounds.end(),
                                 std::greater_equal<double>()),
              metric->bounds.end())
        << metric->name;
  }
}

TEST(Catalogue, TheReadmesTableIsMadeFromIt) {
  std::stringstream readme;
  readme << std::ifstream("common/metrics/README.md").rdbuf();
  EXPECT_THAT(readme.str(), ::testing::HasSubstr(CatalogueTable()))
      << "the table to put into common/metrics/README.md:\n"
      << CatalogueTable();
}

}  // namespace
}  // namespace setu::metrics
