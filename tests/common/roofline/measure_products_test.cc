// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/measure_products.h"

#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "kernels/device.h"

namespace setu::roofline {
namespace {

using kernels::WeightType;
using ::testing::Each;
using ::testing::Gt;

std::vector<WeightType> TypesOf(const std::vector<KernelRates::Product>& products) {
  std::vector<WeightType> types;
  for (const KernelRates::Product& product : products) types.push_back(product.type);
  return types;
}

// Each once, those of the matrices first; of matrices of any size, with any number of rows.
TEST(MeasureProducts, KnowsEachTypeAndWhatMightBeAdvised) {
  const auto ops = kernels::MakeCpuOps({.threads = 1});
  ASSERT_TRUE(ops.ok()) << ops.status();
  const std::vector<float> values(10'000 * 32, 0.5f);
  const auto pack = [&](int64_t rows, WeightType type) {
    return (*ops)->PackAs(
        {.rows = rows, .cols = 32, .data = reinterpret_cast<const std::byte*>(values.data())},
        type);
  };
  const auto small = pack(16, WeightType::kF32), other = pack(64, WeightType::kF32),
             large = pack(10'000, WeightType::kQ4_0);
  const auto products =
      MeasureProducts(**ops, {small.get(), large.get(), other.get()}, 0, TimeCall(**ops));
  EXPECT_THAT(TypesOf(products),
              ::testing::ElementsAre(WeightType::kF32, WeightType::kQ4_0, WeightType::kQ8_0));
  for (const KernelRates::Product& product : products) {
    EXPECT_THAT(product.per_value, Each(Gt(0)));
  }
}

}  // namespace
}  // namespace setu::roofline
