// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace setu::cli {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

std::vector<double> Seconds(const ArrivalProcess& process, size_t count, uint64_t seed = 1) {
  ArrivalTimes times(process, seed);
  std::vector<double> seconds;
  while (seconds.size() < count) {
    const auto at = times.Next();
    if (!at) break;
    seconds.push_back(std::chrono::duration<double>(*at).count());
  }
  return seconds;
}

TEST(Arrivals, AtAFixedRateAreEvenlySpaced) {
  EXPECT_THAT(Seconds(Fixed{4}, 4), ElementsAre(0, 0.25, 0.5, 0.75));
}

TEST(Arrivals, InBurstsKeepTheRate) {
  EXPECT_THAT(Seconds(Bursts{.rate = 4, .size = 2}, 5), ElementsAre(0, 0, 0.5, 0.5, 1));
}

TEST(Arrivals, OfPoissonHaveItsRateAndAsMuchSpreadAsMean) {
  const std::vector<double> at = Seconds(Poisson{50}, 20'000);
  EXPECT_NEAR(at.back(), 400, 10);
  double sum = 0, squares = 0;
  for (size_t i = 1; i < at.size(); ++i) {
    const double gap = at[i] - at[i - 1];
    EXPECT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / static_cast<double>(at.size() - 1);
  const double spread = std::sqrt(squares / static_cast<double>(at.size() - 1) - mean * mean);
  EXPECT_NEAR(spread / mean, 1, 0.05);
}

TEST(Arrivals, AreTheSameForTheSameSeedAlone) {
  EXPECT_EQ(Seconds(Poisson{5}, 100, 7), Seconds(Poisson{5}, 100, 7));
  EXPECT_NE(Seconds(Poisson{5}, 100, 7), Seconds(Poisson{5}, 100, 8));
}

TEST(Arrivals, OfATraceAreItsLinesAndEnd) {
  const auto trace = ParseTrace("t.txt", "# seconds prompt answer\n0 128 64\n\n0.5,16\t8 # a\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(Seconds(*trace, 10), ElementsAre(0, 0.5));
  EXPECT_EQ((*trace->requests)[1].prompt_tokens, 16);
  EXPECT_EQ((*trace->requests)[1].max_tokens, 8);
}

TEST(Arrivals, OfAWrongTraceNameFileAndLine) {
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"0 1 1\n-1 1 1\n", "t.txt:2: a line is seconds"},
           {"0 1\n", "t.txt:1: a line is seconds"},
           {"0 1 1 1\n", "t.txt:1: a line is seconds"},
           {"0 0 1\n", "t.txt:1: a line is seconds"},
           {"nan 1 1\n", "t.txt:1: a line is seconds"},
           {"1 1 1\n0.5 1 1\n", "t.txt:2: it comes before the line above"},
           {"# nothing\n", "t.txt: no request"}}) {
    const auto trace = ParseTrace("t.txt", text);
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_THAT(std::string(trace.status().message()), ::testing::HasSubstr(said));
  }
}

}  // namespace
}  // namespace setu::cli
