// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace setu::cli {
namespace {

std::vector<int32_t> Drawn(const std::string& text, uint64_t count = 10'000) {
  const auto lengths = Lengths::Parse("--max-tokens", text);
  EXPECT_TRUE(lengths.ok()) << lengths.status();
  std::vector<int32_t> drawn;
  for (uint64_t i = 0; i < count; ++i) {
    Draws draws(1, DrawsOf::kShape, i);
    drawn.push_back(lengths->Draw(draws));
  }
  return drawn;
}

TEST(Lengths, OfOneNumberAreThatNumber) { EXPECT_THAT(Drawn("64"), ::testing::Each(64)); }

TEST(Lengths, OfARangeHaveBothEndsAndTheirMean) {
  const std::vector<int32_t> drawn = Drawn("16..31");
  EXPECT_EQ(*std::min_element(drawn.begin(), drawn.end()), 16);
  EXPECT_EQ(*std::max_element(drawn.begin(), drawn.end()), 31);
  double sum = 0;
  for (int32_t length : drawn) sum += length;
  EXPECT_NEAR(sum / static_cast<double>(drawn.size()), 23.5, 0.2);
}

TEST(Lengths, OfAListAreEachAsLikely) {
  std::map<int32_t, int> times;
  for (int32_t length : Drawn("16, 64,256")) ++times[length];
  ASSERT_EQ(times.size(), 3u);
  for (const auto& [length, count] : times) EXPECT_NEAR(count, 3333, 200) << length;
}

TEST(Lengths, OfALognormalHaveItsMedianItsSpreadAndItsCut) {
  std::vector<int32_t> drawn = Drawn("lognormal:200:0.5:1000");
  std::sort(drawn.begin(), drawn.end());
  EXPECT_NEAR(drawn[5000], 200, 5);
  EXPECT_NEAR(drawn[8413], 200 * std::exp(0.5), 12);  // a deviation above
  EXPECT_GE(drawn.front(), 1);
  EXPECT_LE(drawn.back(), 1000);
  EXPECT_THAT(Drawn("lognormal:200:0.5:150"), ::testing::Contains(150));
}

TEST(Lengths, OfAnythingElseAreRefusedWithTheForms) {
  for (const char* wrong :
       {"", "0", "-1", "64x", "9..3", "..", "1..", "1,,2", "1048577", "nan", "lognormal:200:0.5",
        "lognormal:0:1:9", "lognormal:9:nan:9", "lognormal:9:1:0", "lognormal:inf:1:9"}) {
    const auto lengths = Lengths::Parse("--max-tokens", wrong);
    ASSERT_FALSE(lengths.ok()) << wrong;
    EXPECT_THAT(std::string(lengths.status().message()),
                ::testing::AllOf(::testing::HasSubstr("--max-tokens is '"),
                                 ::testing::HasSubstr("LOW..HIGH")));
  }
}

}  // namespace
}  // namespace setu::cli
