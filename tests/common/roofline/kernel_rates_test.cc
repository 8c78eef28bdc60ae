// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/kernel_rates.h"

#include <gtest/gtest.h>

#include "tests/common/roofline/model_fixture.h"

namespace setu::roofline {
namespace {

TEST(SecondsAt, GoesThroughTheTimedRowsAndOnInProportion) {
  const SecondsByRows seconds = {1, 2, 3, 5, 9, 20, 160};
  EXPECT_EQ(SecondsAt(seconds, 1), 1);
  EXPECT_EQ(SecondsAt(seconds, 4), 2);
  EXPECT_EQ(SecondsAt(seconds, 12), 4);
  EXPECT_EQ(SecondsAt(seconds, 512), 160);
  EXPECT_EQ(SecondsAt(seconds, 1024), 320);
}

TEST(KernelRates, OfAttentionGoFromSingleRowsToChunks) {
  const KernelRates rates = {.single = {.row = 7, .key = 3}, .chunk = {.row = 2, .key = 1}};
  EXPECT_EQ(rates.AttentionSeconds({.sequences = 5, .rows = 5, .pairs = 10}), 5 * 7 + 10 * 3);
  EXPECT_EQ(rates.AttentionSeconds({.sequences = 1, .rows = 64, .pairs = 100}), 64 * 2 + 100);
  EXPECT_EQ(rates.AttentionSeconds({.sequences = 2, .rows = 512, .pairs = 100}), 512 * 2 + 100);
  EXPECT_EQ(rates.AttentionSeconds({}), 0);
}

TEST(KernelRates, OfProductsFollowTypeAndRows) {
  const KernelRates rates = {
      .products = {{kernels::WeightType::kQ8_0, {1, 2, 3, 4, 5, 6, 7}},
                   {kernels::WeightType::kQ6_K, {10, 20, 30, 40, 50, 60, 70}}}};
  const ModelShape shape = {
      .formats = {{kernels::WeightType::kQ8_0, 100, 0}, {kernels::WeightType::kQ6_K, 7, 5}}};
  EXPECT_EQ(rates.LayerProducts(shape, 16), 100 * 4 + 7 * 40);
  EXPECT_EQ(rates.LogitProducts(shape, 4), 5 * 20);
  EXPECT_EQ(rates.LogitProducts(shape, 0), 0);
}

TEST(KernelRates, OfLogitsAreNoneWhereNoRowWantsThem) {
  const KernelRates rates = {.layer = {1, 2, 3, 4, 5, 6, 7},
                             .logits = {10, 20, 30, 40, 50, 60, 70}};
  EXPECT_EQ(rates.LayerSeconds(4), 2);
  EXPECT_EQ(rates.LogitSeconds(64), 60);
  EXPECT_EQ(rates.LogitSeconds(0), 0);
}

}  // namespace
}  // namespace setu::roofline
