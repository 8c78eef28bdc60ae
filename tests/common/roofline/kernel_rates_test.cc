// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/kernel_rates.h"

#include <gtest/gtest.h>

#include "tests/common/roofline/model_fixture.h"

namespace setu::roofline {
namespace {

TEST(SecondsAt, GoesThroughTheTimedRowsAndOnInProportion) {
  const SecondsByRows seconds = {1, 2, 5, 20};
  EXPECT_EQ(SecondsAt(seconds, 1), 1);
  EXPECT_EQ(SecondsAt(seconds, 4), 2);
  EXPECT_EQ(SecondsAt(seconds, 10), 3.5);
  EXPECT_EQ(SecondsAt(seconds, 64), 20);
  EXPECT_EQ(SecondsAt(seconds, 512), 160);
}

TEST(KernelRates, OfAttentionGoFromSingleRowsToChunks) {
  const KernelRates rates = {.attention_single = 3, .attention_chunk = 1};
  const StepWork work = {.attention_operations = 10};
  EXPECT_EQ(rates.AttentionSeconds(work, {.sequences = 5, .rows = 5}), 30);
  EXPECT_EQ(rates.AttentionSeconds(work, {.sequences = 1, .rows = 64}), 10);
  EXPECT_EQ(rates.AttentionSeconds(work, {.sequences = 1, .rows = 512}), 10);
  EXPECT_EQ(rates.AttentionSeconds({}, {}), 0);
}

// Layers meet every row, the output matrix only those whose logits are wanted; each at its rows.
TEST(KernelRates, OfProductsFollowTypeAndRows) {
  const KernelRates rates = {.products = {{kernels::WeightType::kQ8_0, {1, 2, 3, 4}},
                                          {kernels::WeightType::kQ6_K, {10, 20, 30, 40}}}};
  const ModelShape shape = {
      .formats = {{kernels::WeightType::kQ8_0, 100, 0}, {kernels::WeightType::kQ6_K, 7, 5}}};
  EXPECT_EQ(rates.ProductSeconds(shape, {.rows = 16, .logits = 1}), 100 * 3 + 7 * 30 + 5 * 10);
  EXPECT_EQ(rates.ProductSeconds(shape, {.rows = 4, .logits = 0}), 100 * 2 + 7 * 20);
}

}  // namespace
}  // namespace setu::roofline
