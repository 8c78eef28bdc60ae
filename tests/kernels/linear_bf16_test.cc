// SPDX-License-Identifier: Apache-2.0
// Products of the bf16-tile path: a scalar definition to the bit, for every type of weights, every
// number of rows and odd shapes; operands rounded to nearest even. On the ISAs of this machine and
// on the model of a tile unit.
#include <cmath>
#include <limits>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/packed_layout.h"
#include "kernels/cpu/packed_matrix.h"
#include "tests/kernels/kernels_fixture.h"
#include "tests/kernels/model_kernels.h"

namespace setu::kernels {
namespace {

bool Quantised(WeightType type) {
  return type != WeightType::kF32 && type != WeightType::kF16 && type != WeightType::kBF16;
}

// The nearest bfloat16, ties to even: 8 bits of mantissa. Subnormals count as zero.
float Rounded(float x) {
  if (std::isnan(x) || std::isinf(x)) return x;
  if (std::fabs(x) < 0x1p-126f) return 0.0f;
  int exponent = 0;
  std::frexp(x, &exponent);
  return static_cast<float>(
      std::ldexp(std::nearbyint(std::ldexp(double{x}, 8 - exponent)), exponent - 8));
}

// The same, ties away from zero: of quantised weights.
float RoundedAway(float x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return static_cast<float>(
      std::ldexp(std::round(std::ldexp(double{x}, 8 - exponent)), exponent - 8));
}

// Rule 4 of the numeric paths, one output.
float Definition(const float* x, const float* weights, int64_t cols, bool quantised) {
  float sum = 0;
  for (int64_t first = 0; first < cols; first += 32) {
    float even = 0, odd = 0;
    for (int64_t k = first; k < std::min(first + 32, cols); ++k) {
      float& chain = k % 2 == 0 ? even : odd;
      const float weight = quantised ? RoundedAway(weights[k]) : Rounded(weights[k]);
      chain = std::fma(Rounded(x[k]), weight, chain);
    }
    sum += even + odd;
  }
  return sum;
}

std::vector<float> Expected(const std::vector<float>& x, const std::vector<float>& weights,
                            int64_t cols, bool quantised) {
  std::vector<float> out;
  for (size_t row = 0; row < x.size(); row += cols) {
    for (size_t w = 0; w < weights.size(); w += cols) {
      out.push_back(Definition(&x[row], &weights[w], cols, quantised));
    }
  }
  return out;
}

std::vector<std::string> IsasAndModels() {
  std::vector<std::string> names = IsasToTest();
  names.push_back("model");
  if (__builtin_cpu_supports("avx512bf16")) {
    names.push_back("model_avx512");
  } else {
    std::printf("not testable on this CPU: the expansion of weights for AMX\n");
  }
  return names;
}

std::unique_ptr<Ops> MakeBf16(const std::string& name) {
  constexpr NumericPath kPath = NumericPath::kBf16Tile;
  const KvType kv = DefaultKvType(kPath);
  if (name == "model") return std::make_unique<CpuOps>(kPath, kv, ModelKernels(), 2);
  if (name == "model_avx512") return std::make_unique<CpuOps>(kPath, kv, ModelKernelsAvx512(), 2);
  return MakeOps(kPath, name);
}

class LinearBf16Test : public testing::TestWithParam<std::string> {
 protected:
  std::vector<float> Product(const RawMatrix& raw, const std::vector<float>& x) {
    const auto packed = ops_->Pack(raw);
    const int64_t rows = static_cast<int64_t>(x.size()) / raw.cols;
    std::vector<float> out(rows * raw.rows);
    const LinearOutput output = {packed.get(), nullptr, View(out, rows, raw.rows), false};
    ops_->Linear(View(x, rows, raw.cols), {&output, 1});
    return out;
  }

  std::unique_ptr<Ops> ops_ = MakeBf16(GetParam());
};

RawMatrix F32Matrix(const std::vector<float>& values, int64_t rows, int64_t cols) {
  return {WeightType::kF32, rows, cols, reinterpret_cast<const std::byte*>(values.data())};
}

TEST_P(LinearBf16Test, IsItsScalarDefinitionForEveryTypeOfWeights) {
  const int64_t rows = 37, cols = 512;
  const std::vector<float> x = Random(1).Floats(3 * cols, 5.0f);
  for (const WeightType type : kAllTypes) {
    const TestWeights w = RandomWeights(type, rows, cols, 2);
    EXPECT_TRUE(SameBits(Product(w.raw(), x),
                         Expected(x, Dequantised(*ops_, w.raw()), cols, Quantised(type))))
        << WeightTypeName(type);
  }
}

TEST_P(LinearBf16Test, IsItsScalarDefinitionForAnyNumberOfRows) {
  const int64_t rows = 21, cols = 96;
  const TestWeights w = RandomWeights(WeightType::kQ4_1, rows, cols, 3);
  const std::vector<float> x = Random(4).Floats(600 * cols);
  const std::vector<float> expected = Expected(x, Dequantised(*ops_, w.raw()), cols, true);
  std::vector<int64_t> batches = {255, 256, 257, 289, 530};
  for (int64_t batch = 1; batch <= 100; ++batch) batches.push_back(batch);
  for (const int64_t batch : batches) {
    const int64_t first = batch % 7;
    const std::vector<float> part(&x[first * cols], &x[(first + batch) * cols]);
    const std::vector<float> bits(&expected[first * rows], &expected[(first + batch) * rows]);
    EXPECT_TRUE(SameBits(Product(w.raw(), part), bits)) << batch << " rows";
  }
}

TEST_P(LinearBf16Test, IsItsScalarDefinitionForOddShapes) {
  for (const int64_t cols : {1, 2, 31, 33, 257, 288}) {
    for (const int64_t rows : {1, 15, 17, 33}) {
      const std::vector<float> weights = Random(5).Floats(rows * cols);
      for (const int64_t batch : {1, 20, 40}) {
        const std::vector<float> x = Random(6).Floats(batch * cols);
        EXPECT_TRUE(
            SameBits(Product(F32Matrix(weights, rows, cols), x), Expected(x, weights, cols, false)))
            << rows << " x " << cols << ", batch " << batch;
      }
    }
  }
}

// Values that rounding could get wrong: each alone in a product with 1.
const float kOddValues[] = {1.0f,
                            1.0f + 0x1p-8f,  // a tie, to the even 1
                            1.0f + 0x1p-8f + 0x1p-23f,
                            1.0f + 0x3p-8f,   // a tie, to the even 1 + 2^-6
                            2.0f - 0x1p-23f,  // up to the next power of 2
                            -1.0f - 0x3p-8f,
                            0x1p-126f,
                            0x1.ff0p-127f,  // subnormal: zero, though near 2^-126
                            0x1.fffffcp-127f,
                            -0x1p-149f,
                            std::numeric_limits<float>::max(),  // to infinity
                            -std::numeric_limits<float>::infinity()};

TEST_P(LinearBf16Test, OperandsAreRoundedToNearestEven) {
  for (const float value : kOddValues) {
    const std::vector<float> odd = {value, 0.0f}, one = {1.0f, 0.0f};
    EXPECT_EQ(Product(F32Matrix(one, 1, 2), odd)[0], Rounded(value)) << value;
    EXPECT_EQ(Product(F32Matrix(odd, 1, 2), one)[0], Rounded(value)) << value;
  }
}

TEST_P(LinearBf16Test, NoNumberStaysNone) {
  for (const uint32_t bits : {0x7fffffffu, 0x7f800001u, 0xffffffffu, 0x7fc00000u}) {
    float nan;
    std::memcpy(&nan, &bits, sizeof(nan));
    const std::vector<float> odd = {nan, 0.0f}, one = {1.0f, 0.0f};
    EXPECT_TRUE(std::isnan(Product(F32Matrix(one, 1, 2), odd)[0])) << bits;
    EXPECT_TRUE(std::isnan(Product(F32Matrix(odd, 1, 2), one)[0])) << bits;
  }
}

TEST_P(LinearBf16Test, ResultsThatWouldBeSubnormalAreZero) {
  const std::vector<float> small = {0x1p-100f, 0x1p-100f}, smaller = {0x1p-40f, 0x1p-40f};
  EXPECT_EQ(Product(F32Matrix(small, 1, 2), smaller)[0], 0.0f);
}

// The models, and the tiles themselves where there are any.
std::vector<const KernelTable*> TablesOfTiles() {
  std::vector<const KernelTable*> tables;
  for (const std::string& name : IsasAndModels()) {
    if (name == "amx") tables.push_back(&AmxKernels());
    if (name == "model") tables.push_back(&ModelKernels());
    if (name == "model_avx512") tables.push_back(&ModelKernelsAvx512());
  }
  return tables;
}

// So many rows that sums wait for other panels, and so many k that these take turns: a piece of
// this size comes of large matrices only.
TEST(LinearTilesTest, IsTheScalarDefinitionWherePanelsTakeTurns) {
  const int64_t rows = 48, cols = 2080, batch = 257;
  const TestWeights w = RandomWeights(WeightType::kQ8_0, rows, cols, 7);
  const std::vector<float> x = Random(8).Floats(batch * cols);
  const auto portable = MakeOps(NumericPath::kBf16Tile, "portable", 1);
  const std::vector<float> expected = Expected(x, Dequantised(*portable, w.raw()), cols, true);
  for (const KernelTable* table : TablesOfTiles()) {
    const KernelTable& kernels = *table;
    CpuMatrix matrix(w.type, rows, cols, kernels.bf16_order);
    for (int64_t tile = 0; tile < matrix.tiles(); ++tile) matrix.PackTile(w.raw(), tile);
    std::vector<uint8_t> rounded(RoundedBytes(batch, cols));
    for (int64_t row = 0; row < batch; row += kernels.round_rows) {
      const int64_t count = std::min(kernels.round_rows, batch - row);
      kernels.round(&x[row * cols], cols, cols, row, count, batch, rounded.data());
    }
    std::vector<float> out(batch * rows), scratch(kernels.bf16_scratch);
    const LinearArgs args = {.weights = matrix.view(),
                             .rows = batch,
                             .rounded = rounded.data(),
                             .out = out.data(),
                             .out_stride = rows};
    kernels.linear_bf16(args, 0, matrix.tiles(), scratch.data());
    EXPECT_TRUE(SameBits(out, expected)) << kernels.isa;
  }
}

TEST(LinearTilesTest, TheProbeDoesTheProductsThatItCounts) {
  const std::vector<float> ones(kProbeVectors * 16, 1.0f);
  for (const KernelTable* table : TablesOfTiles()) {
    float sum = 0.0f;
    EXPECT_EQ(static_cast<float>(table->probe_bf16(ones.data(), 100, &sum)), sum) << table->isa;
    EXPECT_GE(sum, 100 * 8192) << table->isa;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, LinearBf16Test, testing::ValuesIn(IsasAndModels()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace setu::kernels
