// SPDX-License-Identifier: Apache-2.0
// Products: near a naive double sum; the same bits on every ISA, for every number of rows and
// threads; the scalar definition of int8-g32 to the bit.
#include <cmath>

#include "tests/kernels/kernels_fixture.h"
#include "tests/support/numeric_paths.h"

namespace setu::kernels {
namespace {

std::vector<float> Product(Ops& ops, const RawMatrix& raw, const std::vector<float>& x) {
  const auto packed = ops.Pack(raw);
  const int64_t rows = static_cast<int64_t>(x.size()) / raw.cols;
  std::vector<float> out(rows * raw.rows);
  const LinearOutput output = {packed.get(), nullptr, View(out, rows, raw.rows), false};
  ops.Linear(View(x, rows, raw.cols), {&output, 1});
  return out;
}

struct Quantised {
  std::vector<int> q;
  std::vector<float> scale;  // per 32
};

// Rule 5's activations, written plainly.
Quantised QuantiseRow(const float* x, int64_t cols) {
  Quantised row = {std::vector<int>(cols), std::vector<float>(cols / 32)};
  for (int64_t g = 0; g < cols / 32; ++g) {
    float amax = 0;
    for (int i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(x[32 * g + i]));
    row.scale[g] = amax / 127.0f;
    for (int i = 0; i < 32 && amax > 0; ++i) {
      const float scaled = x[32 * g + i] * (127.0f / amax);
      row.q[32 * g + i] = std::clamp(static_cast<int>(std::nearbyint(scaled)), -127, 127);
    }
  }
  return row;
}

class LinearTest : public testing::TestWithParam<std::string> {};

TEST_P(LinearTest, IsNearADoubleSum) {
  const int64_t rows = 19, cols = 512, batch = 3;
  const std::vector<float> x = Random(2).Floats(batch * cols);
  for (const WeightType type : kAllTypes) {
    const TestWeights w = RandomWeights(type, rows, cols, 3);
    for (const NumericPath path : test::kNumericPaths) {
      const auto ops = MakeOps(path, GetParam());
      const std::vector<float> weights = Dequantised(*ops, w.raw());
      const std::vector<float> out = Product(*ops, w.raw(), x);
      const bool plain = BlockValues(type) == 1 || path != NumericPath::kInt8G32;
      // Both operands have lost up to 2^-9 of themselves to bf16.
      const double share = path == NumericPath::kBf16Tile ? 0x1p-8 : 2e-6;
      for (int64_t r = 0; r < batch; ++r) {
        const Quantised q = QuantiseRow(&x[r * cols], cols);
        for (int64_t n = 0; n < rows; ++n) {
          double sum = 0, size = 0;
          for (int64_t k = 0; k < cols; ++k) {
            const double xk = plain ? x[r * cols + k] : double{q.scale[k / 32]} * q.q[k];
            sum += weights[n * cols + k] * xk;
            size += std::fabs(weights[n * cols + k] * xk);
          }
          EXPECT_NEAR(out[r * rows + n], sum, share * size) << WeightTypeName(type);
        }
      }
    }
  }
}

TEST_P(LinearTest, HasTheBitsOfPortable) {
  const int64_t rows = 21;
  for (const NumericPath path : test::kNumericPaths) {
    const auto portable = MakeOps(path, "portable");
    const auto ops = MakeOps(path, GetParam());
    for (const WeightType type : kAllTypes) {
      const int64_t cols = 800 % BlockValues(type) == 0 ? 800 : 768;
      const TestWeights w = RandomWeights(type, rows, cols, 4);
      for (const int64_t batch : {1, 9, 16, 28, 33, 90}) {
        const std::vector<float> x = Random(batch).Floats(batch * cols, 5.0f);
        EXPECT_TRUE(SameBits(Product(*ops, w.raw(), x), Product(*portable, w.raw(), x)))
            << WeightTypeName(type) << " batch " << batch;
      }
    }
  }
}

TEST_P(LinearTest, ARowsBitsDependOnItAlone) {
  const int64_t rows = 40, cols = 256;
  for (const NumericPath path : test::kNumericPaths) {
    const auto ops = MakeOps(path, GetParam());
    for (const WeightType type : kAllTypes) {
      const TestWeights w = RandomWeights(type, rows, cols, 7);
      const std::vector<float> x = Random(8).Floats(80 * cols);
      const std::vector<float> all = Product(*ops, w.raw(), x);
      for (const int64_t batch : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33, 65}) {
        const int64_t first = 80 - batch;
        const std::vector<float> part(x.begin() + first * cols, x.end());
        const std::vector<float> expected(all.begin() + first * rows, all.end());
        EXPECT_TRUE(SameBits(Product(*ops, w.raw(), part), expected))
            << WeightTypeName(type) << " batch " << batch;
      }
    }
  }
}

TEST_P(LinearTest, ThreadsDoNotChangeBits) {
  for (const NumericPath path : test::kNumericPaths) {
    const TestWeights w = RandomWeights(WeightType::kQ4_1, 400, 256, 9);
    const std::vector<float> x = Random(10).Floats(5 * 256);
    const std::vector<float> one = Product(*MakeOps(path, GetParam(), 1), w.raw(), x);
    for (const int threads : {2, 3}) {
      EXPECT_TRUE(SameBits(Product(*MakeOps(path, GetParam(), threads), w.raw(), x), one));
    }
  }
}

// Blocks of Q8_0 {f16 d, int8 w[32]}, d = 1, all weights `value`.
TestWeights ConstantQ8(int64_t rows, int64_t cols, int8_t value) {
  TestWeights w = RandomWeights(WeightType::kQ8_0, rows, cols, 0);
  for (size_t at = 0; at < w.bytes.size(); at += 34) {
    w.bytes[at] = std::byte{0x00};
    w.bytes[at + 1] = std::byte{0x3c};
    for (int i = 0; i < 32; ++i) w.bytes[at + 2 + i] = static_cast<std::byte>(value);
  }
  return w;
}

TEST_P(LinearTest, ExtremeWeightsAndActivationsDoNotSaturate) {
  const auto ops = MakeOps(NumericPath::kInt8G32, GetParam());
  for (const int weight : {-128, -127, 127, 0}) {
    const TestWeights w = ConstantQ8(16, 64, static_cast<int8_t>(weight));
    for (const float sign : {1.0f, -1.0f}) {
      const std::vector<float> x(64, 127.0f * sign);  // scale 1, every q at its limit
      for (const float v : Product(*ops, w.raw(), x)) EXPECT_EQ(v, 64.0f * weight * 127 * sign);
    }
  }
}

TEST_P(LinearTest, ExtremeUnsignedQuantsDoNotSaturate) {
  for (const WeightType type : kAllTypes) {
    if (BlockValues(type) == 1) continue;
    TestWeights w = RandomWeights(type, 16, 256, 11);
    for (size_t at = 0; at < w.bytes.size(); at += BlockBytes(type)) {
      for (int64_t i = 0; i < BlockBytes(type); ++i) w.bytes[at + i] = std::byte{0xff};
      for (const int64_t offset : ScaleOffsets(type)) {
        w.bytes[at + offset] = std::byte{0x00};
        w.bytes[at + offset + 1] = std::byte{0x3c};
      }
    }
    const auto ops = MakeOps(NumericPath::kInt8G32, GetParam());
    const float weight = Dequantised(*ops, w.raw())[0];
    const std::vector<float> x(256, -127.0f);
    for (const float v : Product(*ops, w.raw(), x)) {
      EXPECT_EQ(v, 256 * -127.0f * weight) << WeightTypeName(type);
    }
  }
}

TEST_P(LinearTest, ZeroActivationsAndZeroScalesGiveZero) {
  const auto ops = MakeOps(NumericPath::kInt8G32, GetParam());
  for (const WeightType type : kAllTypes) {
    const TestWeights w = RandomWeights(type, 20, 256, 12);
    for (const float v : Product(*ops, w.raw(), std::vector<float>(256, 0.0f))) EXPECT_EQ(v, 0.0f);
    // So small that the scale would be subnormal.
    for (const float v : Product(*ops, w.raw(), std::vector<float>(256, 0x1p-124f))) {
      EXPECT_LT(std::fabs(v), 0x1p-100f);
    }
    TestWeights none = w;
    std::fill(none.bytes.begin(), none.bytes.end(), std::byte{0});
    for (const float v : Product(*ops, none.raw(), Random(13).Floats(256))) EXPECT_EQ(v, 0.0f);
  }
}

// Rule 5 word for word for a signed and an unsigned type with minimum.
TEST_P(LinearTest, Int8IsItsScalarDefinitionToTheBit) {
  const int64_t rows = 18, cols = 320, batch = 5;
  const auto half = [](const std::byte* p) {  // normal f16 only
    const uint32_t h = static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8;
    const float size = std::ldexp(1024.0f + (h & 1023), static_cast<int>(h >> 10 & 31) - 25);
    return (h & 0x8000) != 0 ? -size : size;
  };
  const std::vector<float> x = Random(14).Floats(batch * cols, 3.0f);
  for (const WeightType type : {WeightType::kQ8_0, WeightType::kQ4_1}) {
    const TestWeights w = RandomWeights(type, rows, cols, 15);
    const auto ops = MakeOps(NumericPath::kInt8G32, GetParam());
    const std::vector<float> out = Product(*ops, w.raw(), x);
    for (int64_t i = 0; i < batch * rows; ++i) {
      const Quantised q = QuantiseRow(&x[i / rows * cols], cols);
      float sum = 0;
      for (int64_t g = 0; g < cols / 32; ++g) {
        const std::byte* b = w.bytes.data() + (i % rows * (cols / 32) + g) * BlockBytes(type);
        int dot = 0, total = 0;
        for (int k = 0; k < 32; ++k) {
          const int nibble = static_cast<int>(b[4 + k % 16] >> (k < 16 ? 0 : 4)) & 15;
          const int weight = type == WeightType::kQ8_0 ? static_cast<int8_t>(b[2 + k]) : nibble;
          dot += weight * q.q[32 * g + k];
          total += q.q[32 * g + k];
        }
        sum = std::fma(half(b) * q.scale[g], static_cast<float>(dot), sum);
        if (type == WeightType::kQ4_1) {
          sum = std::fma(half(b + 2) * q.scale[g], static_cast<float>(total), sum);
        }
      }
      EXPECT_EQ(out[i], sum) << WeightTypeName(type);
    }
  }
}

TEST_P(LinearTest, SeveralOutputsBiasAndResidual) {
  const int64_t cols = 64, batch = 3;
  const std::vector<float> x = Random(16).Floats(batch * cols);
  const auto ops = MakeOps(NumericPath::kInt8G32, GetParam());
  const TestWeights a = RandomWeights(WeightType::kQ8_0, 33, cols, 17);
  const TestWeights b = RandomWeights(WeightType::kF16, 5, cols, 18);
  const auto packed_a = ops->Pack(a.raw()), packed_b = ops->Pack(b.raw());
  const std::vector<float> bias = Random(19).Floats(33);
  const std::vector<float> residual = Random(20).Floats(batch * 40);
  std::vector<float> out_a = residual, out_b(batch * 5);  // out_a has a stride of 40
  const LinearOutput outputs[] = {
      {packed_a.get(), bias.data(), {out_a.data(), batch, 33, 40}, true},
      {packed_b.get(), nullptr, View(out_b, batch, 5), false}};
  ops->Linear(View(x, batch, cols), outputs);
  const std::vector<float> plain = Product(*ops, a.raw(), x);
  for (int64_t r = 0; r < batch; ++r) {
    for (int64_t n = 0; n < 40; ++n) {
      const float before = residual[r * 40 + n];
      const float expected = n < 33 ? before + (plain[r * 33 + n] + bias[n]) : before;
      EXPECT_EQ(out_a[r * 40 + n], expected);
    }
  }
  EXPECT_TRUE(SameBits(out_b, Product(*ops, b.raw(), x)));
}

INSTANTIATE_TEST_SUITE_P(Isas, LinearTest, testing::ValuesIn(IsasToTest()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace setu::kernels
