// SPDX-License-Identifier: Apache-2.0
// Packed weights that were kept are what packing makes, in both orders.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/packed_layout.h"
#include "tests/kernels/kernels_fixture.h"

namespace setu::kernels {
namespace {

KernelTable Packing(PackOrder order) {
  KernelTable table = PortableKernels();
  table.bf16_order = order;
  return table;
}

class Restore : public ::testing::TestWithParam<PackOrder> {
 protected:
  const KernelTable table_ = Packing(GetParam());
  const std::unique_ptr<CpuOps> ops_ =
      std::make_unique<CpuOps>(NumericPath::kBf16Tile, KvType::kBF16, table_, 2);
};

std::vector<std::byte> Kept(const PackedMatrix& matrix) {
  return {matrix.data().begin(), matrix.data().end()};
}

Ops::Fill From(const std::vector<std::byte>& kept) {
  return [&kept](size_t offset, std::span<std::byte> to) {
    std::memcpy(to.data(), kept.data() + offset, to.size());
    return true;
  };
}

// 19 rows are a tile and three lanes; 256 columns whole blocks of every type.
TEST_P(Restore, GivesWhatWasPacked) {
  for (const WeightType type : kAllTypes) {
    SCOPED_TRACE(WeightTypeName(type));
    const TestWeights w = RandomWeights(type, 19, 256, 5);
    const auto packed = ops_->Pack(w.raw());
    const std::vector<std::byte> kept = Kept(*packed);
    EXPECT_EQ(kept.size(), ops_->PackedBytes(type, w.rows, w.cols));
    const auto restored = ops_->Restore(type, w.rows, w.cols, From(kept));
    EXPECT_EQ(Kept(*restored), kept);
    EXPECT_EQ(restored->type(), type);
    EXPECT_TRUE(SameBits(Dequantised(*ops_, *restored), Dequantised(*ops_, *packed)));
  }
}

TEST_P(Restore, AsksForEachPieceOnce) {
  const int64_t rows = 64, cols = 8192;  // of f32: two pieces
  const size_t bytes = ops_->PackedBytes(WeightType::kF32, rows, cols);
  ASSERT_EQ(bytes, 2 * Ops::kRestorePiece);
  std::vector<std::atomic<int>> asked(2);
  const auto matrix =
      ops_->Restore(WeightType::kF32, rows, cols, [&](size_t offset, std::span<std::byte> to) {
        EXPECT_EQ(offset % Ops::kRestorePiece, 0u);
        EXPECT_EQ(to.size(), Ops::kRestorePiece);
        ++asked[offset / Ops::kRestorePiece];
        std::ranges::fill(to, std::byte{1});
        return true;
      });
  EXPECT_EQ(asked[0], 1);
  EXPECT_EQ(asked[1], 1);
  EXPECT_EQ(std::ranges::count(matrix->data(), std::byte{1}), std::ssize(matrix->data()));
}

TEST_P(Restore, OfWhatCannotBeReadIsNull) {
  const auto all_but_the_second = [](size_t offset, std::span<std::byte>) { return offset == 0; };
  EXPECT_EQ(ops_->Restore(WeightType::kF32, 64, 8192, all_but_the_second), nullptr);
}

TEST_P(Restore, FormatNamesTheOrder) {
  EXPECT_EQ(ops_->pack_format().order, GetParam() == PackOrder::kLanes ? "lanes" : "tiles");
}

// Weights packed by older programs are kept in files. Who changes these bytes raises
// kPackRevision, and puts the new digest here.
TEST_P(Restore, PackedBytesAreThoseOfThisRevision) {
  uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](const TestWeights& w, WeightType type) {
    const auto packed = ops_->PackAs(w.raw(), type);
    for (const std::byte b : packed->data()) {
      digest = (digest ^ std::to_integer<uint64_t>(b)) * 0x100000001b3;
    }
  };
  for (const WeightType type : kAllTypes) add(RandomWeights(type, 19, 256, 5), type);
  for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBF16}) {
    add(RandomWeights(type, 19, 256, 5), WeightType::kQ8_0);
    add(RandomWeights(type, 19, 256, 5), WeightType::kQ4_0);
  }
  EXPECT_EQ(kPackRevision, 1);
  EXPECT_EQ(digest, GetParam() == PackOrder::kLanes ? 5100209184637164590u : 7976743916169525154u);
}

INSTANTIATE_TEST_SUITE_P(Orders, Restore, ::testing::Values(PackOrder::kLanes, PackOrder::kTiles),
                         [](const auto& order) {
                           return order.param == PackOrder::kLanes ? "lanes" : "tiles";
                         });

}  // namespace
}  // namespace setu::kernels
