// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/scrape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "common/metrics/catalogue.h"

namespace setu::metrics {
namespace {

using ::testing::HasSubstr;

std::string Text(const Scrape& scrape) {
  return prometheus::TextSerializer().Serialize(scrape.Families());
}

TEST(Scrape, EverySampleCarriesModelAndRole) {
  Scrape scrape("smollm2", "decode");
  scrape.Add(catalogue::kSteps, 3);
  scrape.Add(catalogue::kBlocksHeld, 7);
  EXPECT_EQ(Text(scrape),
            "# HELP setu_kv_blocks_held Blocks held by sequences.\n"
            "# TYPE setu_kv_blocks_held gauge\n"
            "setu_kv_blocks_held{model=\"smollm2\",role=\"decode\"} 7\n"
            "# HELP setu_steps_total Passes through the model; tokens over steps: mean batch.\n"
            "# TYPE setu_steps_total counter\n"
            "setu_steps_total{model=\"smollm2\",role=\"decode\"} 3\n");
}

TEST(Scrape, ReasonsAreSamplesOfOneFamily) {
  Scrape scrape("m", "router");
  scrape.Add(catalogue::kChoicesFinished, 1, "stop");
  scrape.Add(catalogue::kChoicesFinished, 2, "length");
  ASSERT_EQ(scrape.Families().size(), 1u);
  EXPECT_THAT(Text(scrape), HasSubstr("{model=\"m\",role=\"router\",reason=\"stop\"} 1\n"));
  EXPECT_THAT(Text(scrape), HasSubstr("{model=\"m\",role=\"router\",reason=\"length\"} 2\n"));
}

TEST(Scrape, HistogramBucketsAreCumulativeUpToInfinity) {
  Histogram histogram(catalogue::kInterTokenLatency);
  histogram.Observe(0.01, 2);
  histogram.Observe(0.02);
  histogram.Observe(1000.0);
  Scrape scrape("m", "router");
  scrape.Add(histogram);
  const std::string text = Text(scrape);
  EXPECT_THAT(text, HasSubstr("le=\"0.01\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("le=\"0.025\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("le=\"80\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("le=\"+Inf\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("seconds_count{model=\"m\",role=\"router\"} 4\n"));
}

using ScrapeDeathTest = ::testing::Test;

TEST(ScrapeDeathTest, LabelsStayThoseOfTheCatalogue) {
  Scrape scrape("m", "router");
  EXPECT_DEATH(scrape.Add(catalogue::kChoicesFinished, 1, "user-42"), "declares");
  EXPECT_DEATH(scrape.Add(catalogue::kChoicesFinished, 1), "declares");
  EXPECT_DEATH(scrape.Add(catalogue::kSteps, 1), "role");
  const Metric unknown = catalogue::kResumes;
  EXPECT_DEATH(scrape.Add(unknown, 1), "catalogue");
}

}  // namespace
}  // namespace setu::metrics
