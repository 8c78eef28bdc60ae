// SPDX-License-Identifier: Apache-2.0
#include "kernels/convert_kv.h"

#include <gtest/gtest.h>

#include "tests/kernels/kernels_fixture.h"

namespace setu::kernels {
namespace {

// 34 dims are two whole vectors of lanes and a part.
constexpr KvShape kShape = {.kv_heads = 3, .head_dim = 34, .block_tokens = 16};
constexpr int64_t kCols = kShape.kv_heads * kShape.head_dim;
constexpr KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8};

using Bytes = std::vector<std::byte>;

size_t PieceBytes(KvType type) {
  return 2 * kShape.kv_heads * KvHeadBytes(type, kShape.head_dim, kShape.block_tokens);
}

// A block as the kernels of `isa` fill it.
Bytes Stored(const std::string& isa, KvType type, const std::vector<float>& k,
             const std::vector<float>& v) {
  Bytes piece(PieceBytes(type));
  const int32_t block = 0;
  StoreKv(
      *MakeOps(NumericPath::kF32, isa, 1, type), View(k, kShape.block_tokens, kCols),
      View(v, kShape.block_tokens, kCols), {0, kShape.block_tokens, 0, {&block, 1}},
      {piece.data(), piece.size(), type, kShape.kv_heads, kShape.head_dim, kShape.block_tokens});
  return piece;
}

Bytes Converted(const Bytes& in, KvType from, KvType to) {
  Bytes out(PieceBytes(to), std::byte{0xee});
  ConvertKv(kShape, from, in.data(), to, out.data());
  return out;
}

std::vector<float> Floats(const Bytes& f32_piece) {
  std::vector<float> values(f32_piece.size() / sizeof(float));
  std::memcpy(values.data(), f32_piece.data(), f32_piece.size());
  return values;
}

class ConvertKvTest : public testing::TestWithParam<KvType> {
 protected:
  const std::vector<float> k_ = Random(1).Floats(kShape.block_tokens * kCols, 3.0f);
  const std::vector<float> v_ = Random(2).Floats(kShape.block_tokens * kCols, 0.01f);
};

TEST_P(ConvertKvTest, FromF32HasTheBitsOfAStoreOnEveryIsa) {
  for (const std::string& isa : IsasToTest()) {
    EXPECT_EQ(Converted(Stored(isa, KvType::kF32, k_, v_), KvType::kF32, GetParam()),
              Stored(isa, GetParam(), k_, v_))
        << isa;
  }
}

// f32 holds every value of the others, so that it may stand between any two.
TEST_P(ConvertKvTest, BetweenAnyTwoTypesIsByWayOfF32) {
  const Bytes in = Stored("portable", GetParam(), k_, v_);
  const Bytes exact = Converted(in, GetParam(), KvType::kF32);
  for (const KvType to : kTypes) {
    EXPECT_EQ(Converted(in, GetParam(), to), Converted(exact, KvType::kF32, to)) << KvTypeName(to);
  }
}

TEST_P(ConvertKvTest, ValuesStayWithinTheTypesRounding) {
  const std::vector<float> before = Floats(Stored("portable", KvType::kF32, k_, v_));
  const std::vector<float> after =
      Floats(Converted(Stored("portable", GetParam(), k_, v_), GetParam(), KvType::kF32));
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    const float largest = i < before.size() / 2 ? 3.0f : 0.01f;
    EXPECT_NEAR(before[i], after[i], largest / 128) << i;
  }
}

// Slots behind the last token are sent as zeros.
TEST_P(ConvertKvTest, ZerosStayZeros) {
  for (const KvType to : kTypes) {
    EXPECT_EQ(Converted(Bytes(PieceBytes(GetParam())), GetParam(), to), Bytes(PieceBytes(to)));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ConvertKvTest, testing::ValuesIn(kTypes),
                         [](const auto& info) { return KvTypeName(info.param); });

}  // namespace
}  // namespace setu::kernels
