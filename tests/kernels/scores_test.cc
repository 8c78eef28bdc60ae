// SPDX-License-Identifier: Apache-2.0
// Passes over a row of scores: what they are defined as, and the same bits on every ISA.
#include "kernels/scores.h"

#include <cmath>
#include <limits>

#include "kernels/cpu/kernel_table.h"
#include "tests/kernels/kernels_fixture.h"

namespace setu::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<const KernelTable*> Tables() {
  std::vector<const KernelTable*> tables;
  for (const std::string& isa : IsasToTest()) {
    tables.push_back(isa == "avx512" ? &Avx512Kernels()
                     : isa == "avx2" ? &Avx2Kernels()
                                     : &PortableKernels());
  }
  return tables;
}

TEST(ScoresTest, OrderedScoresHaveNoNaNAndNoInfinityAbove) {
  const float most = std::numeric_limits<float>::max();
  std::vector<float> x = Random(1).Floats(37, 1e30f), expected = x;
  for (const auto& [at, from, to] : {std::tuple{0, kNaN, -kInf},
                                     {17, -kNaN, -kInf},
                                     {18, kInf, most},
                                     {36, -kInf, -kInf},
                                     {35, kNaN, -kInf}}) {
    x[at] = from;
    expected[at] = to;
  }
  for (const KernelTable* table : Tables()) {
    std::vector<float> out(x.size());
    table->order_scores(x.data(), std::ssize(x), out.data());
    EXPECT_TRUE(SameBits(out, expected)) << table->isa;
  }
}

TEST(ScoresTest, TheHighestScoreIsFoundWhereverItStands) {
  for (const KernelTable* table : Tables()) {
    EXPECT_EQ(table->highest_score(nullptr, 0), -kInf);
    for (const int64_t count : {1, 15, 16, 17, 40}) {
      for (int64_t at = 0; at < count; ++at) {
        std::vector<float> x(count, -3.0f);
        x[at] = -2.0f;
        EXPECT_EQ(table->highest_score(x.data(), count), -2.0f) << table->isa << count << " " << at;
      }
    }
  }
}

TEST(ScoresTest, ScaledScoresAreRoundedOncePerOperation) {
  const std::vector<float> x = Random(2).Floats(53, 40.0f);
  for (const KernelTable* table : Tables()) {
    std::vector<float> out = x;
    table->scale_scores(out.data(), std::ssize(out), 38.7f, 0.7f);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(out[i], (x[i] - 38.7f) / 0.7f) << table->isa;
  }
}

TEST(ScoresTest, SumsAreSixteenPartsJoinedByHalves) {
  for (const int64_t count : {0, 3, 16, 1000, 49152}) {
    const std::vector<float> x = Random(3).Floats(count);
    double parts[16] = {};
    for (int64_t i = 0; i < count; ++i) parts[i % 16] += x[i] >= 0.25f ? x[i] : 0.0f;
    for (int width = 8; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) parts[i] += parts[i + width];
    }
    for (const KernelTable* table : Tables()) {
      EXPECT_EQ(table->sum_scores(x.data(), count, 0.25f), parts[0]) << table->isa << " " << count;
    }
    EXPECT_EQ(SumScores(x.data(), count, 0.25f), parts[0]);
  }
}

TEST(ScoresTest, SelectsAllThatAreNotBelow) {
  for (const int64_t count : {0, 1, 16, 45}) {
    std::vector<float> x = Random(4).Floats(count);
    if (count > 20) x[20] = 0.5f;  // the bound itself
    std::vector<int32_t> expected;
    for (int64_t i = 0; i < count; ++i) {
      if (x[i] >= 0.5f) expected.push_back(static_cast<int32_t>(i));
    }
    for (const KernelTable* table : Tables()) {
      std::vector<int32_t> ids(count);
      ids.resize(table->select_scores(x.data(), count, 0.5f, ids.data()));
      EXPECT_EQ(ids, expected) << table->isa << " " << count;
    }
  }
}

}  // namespace
}  // namespace setu::kernels
