// SPDX-License-Identifier: Apache-2.0
// Norm, rotary embedding, activation and KV rounding: near their formulas in double, and the same
// bits on every ISA.
#include <cmath>
#include <limits>

#include "tests/kernels/kernels_fixture.h"

namespace setu::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

class RowsTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Ops> ops_ = MakeOps(NumericPath::kInt8G32, GetParam());
  std::unique_ptr<Ops> portable_ = MakeOps(NumericPath::kInt8G32, "portable", 1);
};

std::vector<float> Norm(Ops& ops, const std::vector<float>& x, const std::vector<float>& weight,
                        int64_t rows, int64_t group) {
  const int64_t cols = static_cast<int64_t>(x.size()) / rows;
  std::vector<float> out = x;  // in place
  ops.RmsNorm(View(std::as_const(out), rows, cols), weight.data(), 1e-5f, group,
              View(out, rows, cols));
  return out;
}

TEST_P(RowsTest, RmsNorm) {
  for (const auto& [cols, group] : {std::pair{576, 0}, {45, 0}, {192, 64}, {120, 20}}) {
    const int64_t rows = 20, width = group == 0 ? cols : group;
    const std::vector<float> x = Random(1).Floats(rows * cols, 3.0f);
    const std::vector<float> weight = Random(2).Floats(width);
    const std::vector<float> out = Norm(*ops_, x, weight, rows, group);
    EXPECT_TRUE(SameBits(out, Norm(*portable_, x, weight, rows, group))) << cols;
    for (int64_t first = 0; first < rows * cols; first += width) {
      double squares = 0;
      for (int64_t i = 0; i < width; ++i) squares += double{x[first + i]} * x[first + i];
      const double scale = 1.0 / std::sqrt(squares / width + 1e-5);
      for (int64_t i = 0; i < width; ++i) {
        EXPECT_NEAR(out[first + i], x[first + i] * scale * weight[i], 1e-6);
      }
    }
    const std::vector<float> row(x.end() - cols, x.end()), last(out.end() - cols, out.end());
    EXPECT_TRUE(SameBits(Norm(*ops_, row, weight, 1, group), last));
  }
}

TEST_P(RowsTest, Rope) {
  const int64_t heads = 3, head_dim = 24, rotary_dim = 20, half = 10, cols = heads * head_dim;
  std::vector<float> cos(50 * half), sin(50 * half);
  for (size_t i = 0; i < cos.size(); ++i) {
    cos[i] = static_cast<float>(std::cos(0.1 * i));
    sin[i] = static_cast<float>(std::sin(0.1 * i));
  }
  const RopeTable table = {cos.data(), sin.data(), 50, rotary_dim};
  const SequenceRows sequences[] = {{0, 4, 7, {}}, {4, 1, 49, {}}};
  const std::vector<float> x = Random(3).Floats(5 * cols);
  for (const RopeKind kind : {RopeKind::kInterleaved, RopeKind::kHalves}) {
    std::vector<float> out = x, expected = x;
    ops_->Rope(View(out, 5, cols), head_dim, sequences, table, kind);
    portable_->Rope(View(expected, 5, cols), head_dim, sequences, table, kind);
    EXPECT_TRUE(SameBits(out, expected));
    for (int64_t i = 0; i < 5 * heads * half; ++i) {
      const int64_t row = i / (heads * half), pair = i % half;
      const int64_t head = row * cols + i / half % heads * head_dim;
      const int64_t angle = (row < 4 ? 7 + row : 49) * half + pair;
      const bool interleaved = kind == RopeKind::kInterleaved;
      const int64_t a = head + (interleaved ? 2 * pair : pair);
      const int64_t b = interleaved ? a + 1 : a + half;
      EXPECT_NEAR(out[a], x[a] * cos[angle] - x[b] * sin[angle], 1e-6);
      EXPECT_NEAR(out[b], x[a] * sin[angle] + x[b] * cos[angle], 1e-6);
    }
    for (int64_t i = rotary_dim; i < head_dim; ++i) EXPECT_EQ(out[i], x[i]);  // do not turn
  }
}

TEST_P(RowsTest, SiluMul) {
  const int64_t rows = 7, cols = 1003;
  std::vector<float> gate = Random(4).Floats(rows * cols, 30.0f);
  gate[0] = -1000.0f;  // e^1000 is infinite
  gate[1] = 1000.0f;
  gate[2] = 0.0f;
  const std::vector<float> up = Random(5).Floats(rows * cols);
  std::vector<float> out = gate, expected = gate;
  ops_->SiluMul(View(out, rows, cols), View(up, rows, cols));
  portable_->SiluMul(View(expected, rows, cols), View(up, rows, cols));
  EXPECT_TRUE(SameBits(out, expected));
  for (int64_t i = 0; i < rows * cols; ++i) {
    const double exact = gate[i] / (1.0 + std::exp(-double{gate[i]})) * up[i];
    EXPECT_NEAR(out[i], exact, 1e-6 * (std::fabs(exact) + 1e-3)) << gate[i];
  }
}

// 34 is two whole vectors of lanes and a part.
TEST_P(RowsTest, StoreKvRoundsHalvesToNearestEven) {
  std::vector<float> k = Random(6).Floats(34, 70000.0f);
  const float hard[] = {0.0f,
                        -0.0f,
                        1.0f + 0x1p-11f,
                        1.0f + 3 * 0x1p-11f,
                        65504.0f,
                        65519.0f,
                        65520.0f,
                        0x1p-24f,
                        0x1p-25f,
                        0x1.8p-25f,
                        -0x1p-14f,
                        0x1.ffbp-15f,
                        0x1.ffcp-15f,
                        kInf,
                        -kInf};
  const uint16_t expected[] = {0x0000, 0x8000, 0x3c00, 0x3c02, 0x7bff, 0x7bff, 0x7c00, 0x0001,
                               0x0000, 0x0001, 0x8400, 0x03ff, 0x0400, 0x7c00, 0xfc00};
  std::copy(std::begin(hard), std::end(hard), k.begin());
  const std::vector<float> v = Random(7).Floats(34, 0x1p-13f);
  constexpr int64_t kTokens = 16;
  const auto store = [&](Ops& ops) {
    std::vector<std::byte> memory(2 * 34 * kTokens * 2);
    const int32_t block = 0;
    const SequenceRows s = {0, 1, 2, {&block, 1}};
    ops.StoreKv(View(k, 1, 34), View(v, 1, 34), {&s, 1},
                {memory.data(), memory.size(), KvType::kF16, 1, 34, kTokens});
    return memory;
  };
  const std::vector<std::byte> memory = store(*ops_);
  EXPECT_EQ(memory, store(*portable_));
  std::vector<uint16_t> slot(34);
  for (int64_t d = 0; d < 34; ++d) {  // of token 2; K lies [head_dim][token]
    std::memcpy(&slot[d], memory.data() + (d * kTokens + 2) * 2, 2);
  }
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(slot[i], expected[i]) << hard[i];
}

INSTANTIATE_TEST_SUITE_P(Isas, RowsTest, testing::ValuesIn(IsasToTest()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace setu::kernels
