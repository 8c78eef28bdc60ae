// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/measure_kernels.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/tiny_model.h"

namespace setu::roofline {
namespace {

std::unique_ptr<engine::ModelRunner> Load(kernels::WeightType type, int32_t max_rows) {
  const test::TempDir dir;
  auto runner = engine::ModelRunner::Load(
      {.model_path = test::WriteTinyModel(dir, {.weights = type, .tied = false}),
       .cpu = {.threads = 1},
       .kv_memory_bytes = 1 << 20,
       .max_rows = max_rows,
       .max_logits = 2},
      nullptr);
  EXPECT_TRUE(runner.ok()) << runner.status();
  return *std::move(runner);
}

// Every type that the model has, every number of rows, also those that its steps never have.
TEST(MeasureKernels, KnowsAllRowsOfAllTypes) {
  for (const auto type : {kernels::WeightType::kF32, kernels::WeightType::kQ8_0}) {
    for (const int32_t max_rows : {2, 512}) {
      const auto runner = Load(type, max_rows);
      const KernelRates rates = MeasureKernels(*runner, 0);
      const ModelShape shape =
          ShapeOf(runner->config(), runner->weights(), runner->fingerprint().layout);
      // Its own, and those that an advice may be about.
      EXPECT_EQ(rates.products.size(), type == kernels::WeightType::kF32 ? 3u : 2u);
      for (const int64_t rows : kTimedRows) {
        EXPECT_GT(rates.LayerProducts(shape, rows), 0) << rows;
        EXPECT_GT(rates.LayerSeconds(rows), 0) << rows;
        EXPECT_GT(rates.LogitSeconds(rows), 0) << rows;
      }
      EXPECT_GT(rates.AttentionSeconds(DecodeRows(1, 16)), 0);
    }
  }
}

// Blocks that hold what a prefix cache may still want are not written.
TEST(MeasureKernels, LeavesThePoolAsItWas) {
  const auto runner = Load(kernels::WeightType::kQ8_0, 512);
  const auto bytes = [&runner] {
    std::vector<std::byte> all;
    for (kv::BlockId block = 0; block < runner->pool().total(); ++block) {
      for (int32_t layer = 0; layer < runner->config().layers; ++layer) {
        const auto piece = runner->storage().Piece(block, layer);
        all.insert(all.end(), piece.begin(), piece.end());
      }
    }
    return all;
  };
  const std::vector<std::byte> before = bytes();
  MeasureKernels(*runner, 0);
  EXPECT_EQ(bytes(), before);
  EXPECT_EQ(runner->pool().held(), 0);
}

}  // namespace
}  // namespace setu::roofline
