// SPDX-License-Identifier: Apache-2.0
// Norm, rotary embedding, activation and KV rounding: near their formulas in double, and the same
// bits on every ISA.
#include <cmath>
#include <limits>
#include <span>
#include <tuple>

#include "tests/kernels/kernels_fixture.h"

namespace setu::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

class RowsTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Ops> ops_ = MakeOps(NumericPath::kF32, GetParam());
  std::unique_ptr<Ops> portable_ = MakeOps(NumericPath::kF32, "portable", 1);
};

// The rows that a product sees: times the identity, one fma and additions of zero.
std::vector<float> Seen(Ops& ops, const LinearInput& input, int64_t rows, int64_t cols) {
  std::vector<float> identity(cols * cols), out(rows * cols);
  for (int64_t i = 0; i < cols; ++i) identity[i * (cols + 1)] = 1.0f;
  const auto weights =
      ops.Pack({WeightType::kF32, cols, cols, reinterpret_cast<const std::byte*>(identity.data())});
  const LinearOutput output = {weights.get(), nullptr, View(out, rows, cols), false};
  ops.Linear(input, {&output, 1});
  return out;
}

void ExpectNormed(const float* out, const float* x, const std::vector<float>& weight) {
  double squares = 0;
  for (size_t i = 0; i < weight.size(); ++i) squares += double{x[i]} * x[i];
  const double scale = 1.0 / std::sqrt(squares / weight.size() + 1e-5);
  for (size_t i = 0; i < weight.size(); ++i) EXPECT_NEAR(out[i], x[i] * scale * weight[i], 1e-6);
}

TEST_P(RowsTest, NormedRows) {
  const int64_t rows = 20;
  for (const int64_t cols : {576, 45}) {
    const std::vector<float> x = Random(1).Floats(rows * cols, 3.0f);
    const std::vector<float> weight = Random(2).Floats(cols);
    const auto norm = [&](Ops& ops, int64_t first) {
      const Normed normed = {
          {x.data() + first * cols, rows - first, cols, cols}, weight.data(), 1e-5f};
      return Seen(ops, normed, rows - first, cols);
    };
    const std::vector<float> out = norm(*ops_, 0);
    EXPECT_TRUE(SameBits(out, norm(*portable_, 0))) << cols;
    for (int64_t r = 0; r < rows; ++r) ExpectNormed(&out[r * cols], &x[r * cols], weight);
    EXPECT_TRUE(SameBits(norm(*ops_, rows - 1), {out.end() - cols, out.end()}));
  }
}

// The int8 of a row that is normed on the way are those of the row normed before.
TEST_P(RowsTest, NormedRowsAreQuantisedAsRowsFromMemory) {
  const int64_t rows = 9, cols = 96;
  const auto int8 = MakeOps(NumericPath::kInt8G32, GetParam());
  const std::vector<float> x = Random(8).Floats(rows * cols);
  const std::vector<float> weight = Random(10).Floats(cols);
  const TestWeights q8 = RandomWeights(WeightType::kQ8_0, 32, cols, 11);
  const TestWeights f32 = RandomWeights(WeightType::kF32, 16, cols, 12);
  const auto quantised = int8->Pack(q8.raw()), plain = int8->Pack(f32.raw());
  const auto products = [&](const LinearInput& input) {
    std::vector<float> out(rows * 48);
    const LinearOutput outputs[] = {{quantised.get(), nullptr, {out.data(), rows, 32, 48}, false},
                                    {plain.get(), nullptr, {out.data() + 32, rows, 16, 48}, false}};
    int8->Linear(input, outputs);
    return out;
  };
  const Normed normed = {View(x, rows, cols), weight.data(), 1e-5f};
  const std::vector<float> made = Seen(*ops_, normed, rows, cols);
  EXPECT_TRUE(SameBits(products(normed), products(View(made, rows, cols))));
}

// q of three heads, K of two: each is turned by its row's position, K on its way into the blocks.
TEST_P(RowsTest, Rope) {
  const int64_t heads = 3, kv_heads = 2, head_dim = 24, rotary_dim = 20, half = 10, rows = 5;
  const int64_t cols = heads * head_dim, kv_cols = kv_heads * head_dim;
  std::vector<float> cos(50 * half), sin(50 * half);
  for (size_t i = 0; i < cos.size(); ++i) {
    cos[i] = static_cast<float>(std::cos(0.1 * i));
    sin[i] = static_cast<float>(std::sin(0.1 * i));
  }
  const RopeTable table = {cos.data(), sin.data(), 50, rotary_dim};
  const int32_t blocks[] = {0, 1, 2, 3};
  const SequenceRows sequences[] = {{0, 4, 7, blocks}, {4, 1, 49, blocks}};
  std::vector<std::byte> memory(4 * 2 * kv_cols * 16 * 4);
  const KvLayer kv = {memory.data(), memory.size() / 4, KvType::kF32, kv_heads, head_dim, 16};
  const std::vector<float> x = Random(3).Floats(rows * cols),
                           keys = Random(4).Floats(rows * kv_cols);
  const auto turn = [&](Ops& ops, RopeKind kind) {
    std::vector<float> q = x, k = keys;
    ops.RopeAndStoreKv(View(q, rows, cols), View(k, rows, kv_cols), View(keys, rows, kv_cols),
                       sequences, {}, table, kind, kv);
    q.insert(q.end(), k.begin(), k.end());
    return q;
  };
  const auto expect_turned = [&](const float* out, const float* in, int64_t row, RopeKind kind) {
    for (int64_t pair = 0; pair < half; ++pair) {
      const int64_t angle = (row < 4 ? 7 + row : 49) * half + pair;
      const bool interleaved = kind == RopeKind::kInterleaved;
      const int64_t a = interleaved ? 2 * pair : pair, b = interleaved ? a + 1 : a + half;
      EXPECT_NEAR(out[a], in[a] * cos[angle] - in[b] * sin[angle], 1e-6);
      EXPECT_NEAR(out[b], in[a] * sin[angle] + in[b] * cos[angle], 1e-6);
    }
    for (int64_t i = rotary_dim; i < head_dim; ++i) EXPECT_EQ(out[i], in[i]);  // do not turn
  };
  for (const RopeKind kind : {RopeKind::kInterleaved, RopeKind::kHalves}) {
    const std::vector<float> out = turn(*ops_, kind);
    EXPECT_TRUE(SameBits(out, turn(*portable_, kind)));
    for (int64_t i = 0; i < rows * heads; ++i) {
      expect_turned(&out[i * head_dim], &x[i * head_dim], i / heads, kind);
    }
    for (int64_t i = 0; i < rows * kv_heads; ++i) {
      expect_turned(&out[rows * cols + i * head_dim], &keys[i * head_dim], i / kv_heads, kind);
    }
    float stored = 0;  // position 8 is row 1; head 1, dim 3 of K
    std::memcpy(&stored, memory.data() + ((head_dim + 3) * 16 + 8) * 4, 4);
    EXPECT_EQ(stored, out[rows * cols + kv_cols + head_dim + 3]);
  }
}

TEST_P(RowsTest, HeadsAreNormedBeforeTheyTurn) {
  const int64_t rows = 3, head_dim = 64, cols = 3 * head_dim;
  std::vector<float> x = Random(1).Floats(rows * cols, 3.0f);
  const std::vector<float> before = x, weight = Random(2).Floats(head_dim);
  std::vector<float> k = Random(5).Floats(rows * head_dim);
  const std::vector<float> k_before = k;
  const std::vector<float> cos(rows, 0.0f), sin(rows, 1.0f);  // a quarter turn of the first pair
  const int32_t block = 0;
  const SequenceRows s = {0, rows, 0, {&block, 1}};
  std::vector<std::byte> memory(2 * head_dim * 16 * 4);
  ops_->RopeAndStoreKv(View(x, rows, cols), View(k, rows, head_dim), View(k_before, rows, head_dim),
                       {&s, 1}, {weight.data(), nullptr, 1e-5f}, {cos.data(), sin.data(), rows, 2},
                       RopeKind::kHalves,
                       {memory.data(), memory.size(), KvType::kF32, 1, head_dim, 16});
  for (int64_t head = 0; head < rows * 3; ++head) {
    float* at = &x[head * head_dim];
    std::swap(at[0], at[1]);  // back
    at[1] = -at[1];
    ExpectNormed(at, &before[head * head_dim], weight);
  }
  EXPECT_EQ(k[2], k_before[2]);  // no weights: no norm
}

// silu(gate) * up of plain rows: products with one half of [gate, up] each, exact in f32.
std::vector<float> GatedRows(Ops& ops, const std::vector<float>& gate, const std::vector<float>& up,
                             int64_t rows, int64_t cols) {
  std::vector<float> x(rows * 2 * cols), halves[2], out(rows * cols);
  for (int64_t i = 0; i < rows * cols; ++i) {
    x[i / cols * 2 * cols + i % cols] = gate[i];
    x[i / cols * 2 * cols + cols + i % cols] = up[i];
  }
  std::unique_ptr<PackedMatrix> weights[2];
  for (int64_t half = 0; half < 2; ++half) {
    halves[half].resize(cols * 2 * cols);
    for (int64_t i = 0; i < cols; ++i) halves[half][i * 2 * cols + half * cols + i] = 1.0f;
    weights[half] = ops.Pack({WeightType::kF32, cols, 2 * cols,
                              reinterpret_cast<const std::byte*>(halves[half].data())});
  }
  std::vector<float> same(cols * cols);
  for (int64_t i = 0; i < cols; ++i) same[i * cols + i] = 1.0f;
  const auto down =
      ops.Pack({WeightType::kF32, cols, cols, reinterpret_cast<const std::byte*>(same.data())});
  ops.FeedForward(View(x, rows, 2 * cols), *weights[0], *weights[1],
                  {down.get(), nullptr, View(out, rows, cols)});
  return out;
}

TEST_P(RowsTest, GatedRows) {
  const int64_t rows = 7, cols = 203;
  std::vector<float> gate = Random(4).Floats(rows * cols, 30.0f);
  gate[0] = -1000.0f;  // e^1000 is infinite
  gate[1] = 1000.0f;
  gate[2] = 0.0f;
  const std::vector<float> up = Random(5).Floats(rows * cols);
  const std::vector<float> out = GatedRows(*ops_, gate, up, rows, cols);
  EXPECT_TRUE(SameBits(out, GatedRows(*portable_, gate, up, rows, cols)));
  for (int64_t i = 0; i < rows * cols; ++i) {
    const double exact = gate[i] / (1.0 + std::exp(-double{gate[i]})) * up[i];
    EXPECT_NEAR(out[i], exact, 1e-6 * (std::fabs(exact) + 1e-3)) << gate[i];
  }
}

// On every path, of few rows and of many, the bits of its products on their own and of rows gated
// between them.
TEST_P(RowsTest, AFeedForwardIsThatOfThreeLinears) {
  const int64_t cols = 96, outputs = 40;
  for (const auto& [wide, threads, other_type] : {std::tuple(int64_t{203}, 1, false),
                                                  {203, 3, false},
                                                  {203, 1, true},
                                                  {203, 3, true},
                                                  {576, 2, false}}) {
    const TestWeights gate = RandomWeights(WeightType::kQ8_0, wide, cols, 14);
    const TestWeights up =
        RandomWeights(other_type ? WeightType::kQ4_0 : WeightType::kQ8_0, wide, cols, 15);
    const TestWeights down = RandomWeights(WeightType::kF16, outputs, wide, 17);
    for (const NumericPath path :
         {NumericPath::kF32, NumericPath::kInt8G32, NumericPath::kBf16Tile}) {
      const auto ops = MakeOps(path, GetParam(), threads);
      const auto packed_gate = ops->Pack(gate.raw()), packed_up = ops->Pack(up.raw()),
                 packed_down = ops->Pack(down.raw());
      for (const int64_t rows : {1, 20, 33, 70, 530}) {
        const std::vector<float> x = Random(16).Floats(rows * cols);
        std::vector<float> apart[2], expected = Random(18).Floats(rows * outputs), out = expected;
        for (auto& product : apart) product.resize(rows * wide);
        const LinearOutput both[] = {
            {packed_gate.get(), nullptr, View(apart[0], rows, wide), false},
            {packed_up.get(), nullptr, View(apart[1], rows, wide), false}};
        ops->Linear(View(x, rows, cols), both);
        const std::vector<float> gated = GatedRows(*ops_, apart[0], apart[1], rows, wide);
        const LinearOutput last[] = {
            {packed_down.get(), nullptr, View(expected, rows, outputs), true}};
        ops->Linear(View(gated, rows, wide), last);
        ops->FeedForward(View(x, rows, cols), *packed_gate, *packed_up,
                         {packed_down.get(), nullptr, View(out, rows, outputs), true});
        EXPECT_TRUE(SameBits(out, expected))
            << static_cast<int>(path) << " " << threads << " " << rows << " " << wide;
      }
    }
  }
}

constexpr int64_t kTokens = 16;

// The block after K and V of one token went to slot 2.
std::vector<std::byte> Stored(const std::string& isa, KvType type, const std::vector<float>& k,
                              const std::vector<float>& v) {
  const auto ops = MakeOps(NumericPath::kF32, isa, 1, type);
  const int64_t dim = static_cast<int64_t>(k.size());
  std::vector<std::byte> memory(2 * KvHeadBytes(type, dim, kTokens));
  const int32_t block = 0;
  StoreKv(*ops, View(k, 1, dim), View(v, 1, dim), {0, 1, 2, {&block, 1}},
          {memory.data(), memory.size(), type, 1, dim, kTokens});
  return memory;
}

// Of 16-bit types: `hard` become `expected` in K, and all of `k` is as on portable. 34 is two whole
// vectors of lanes and a part.
void ExpectRounded(const std::string& isa, KvType type, std::span<const float> hard,
                   std::span<const uint16_t> expected) {
  std::vector<float> k = Random(6).Floats(34, 70000.0f);
  std::copy(hard.begin(), hard.end(), k.begin());
  const std::vector<float> v = Random(7).Floats(34, 0x1p-13f);
  const std::vector<std::byte> memory = Stored(isa, type, k, v);
  EXPECT_EQ(memory, Stored("portable", type, k, v));
  for (size_t d = 0; d < expected.size(); ++d) {
    uint16_t value = 0;
    const KvPlace place = KeyPlace(type, 34, kTokens, 2);
    std::memcpy(&value, &memory[IndexOf(place, static_cast<int64_t>(d)) * 2], 2);
    EXPECT_EQ(value, expected[d]) << hard[d];
  }
}

TEST_P(RowsTest, StoreKvRoundsHalvesToNearestEven) {
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
  ExpectRounded(GetParam(), KvType::kF16, hard, expected);
}

TEST_P(RowsTest, StoreKvRoundsBfloatsToNearestEven) {
  const float hard[] = {-0.0f, 1.0f + 0x1p-8f, 1.0f + 3 * 0x1p-8f,        0x1.fffp+127f,
                        -kInf, 0x1p-133f,      1.0f + 0x1p-8f + 0x1p-23f, std::nanf("")};
  const uint16_t expected[] = {0x8000, 0x3f80, 0x3f82, 0x7f80, 0xff80, 0x0001, 0x3f81, 0x7fc0};
  ExpectRounded(GetParam(), KvType::kBF16, hard, expected);
}

// Of the 34 values of K and of V in slot 2.
struct Int8Slot {
  float scale;
  std::vector<int> q;
};
Int8Slot ReadInt8(const std::vector<std::byte>& memory, bool key) {
  const std::byte* part = memory.data() + (key ? 0 : memory.size() / 2);
  Int8Slot slot;
  std::memcpy(&slot.scale, part + 34 * kTokens + 2 * sizeof(float), sizeof(float));
  for (int64_t d = 0; d < 34; ++d) {
    slot.q.push_back(static_cast<int8_t>(part[key ? d * kTokens + 2 : 2 * 34 + d]));
  }
  return slot;
}

TEST_P(RowsTest, StoreKvQuantisesEachTokenAndHeadByItsLargestValue) {
  const std::vector<float> k = Random(8).Floats(34, 3.0f), v = Random(9).Floats(34, 1e-3f);
  const std::vector<std::byte> memory = Stored(GetParam(), KvType::kInt8, k, v);
  EXPECT_EQ(memory, Stored("portable", KvType::kInt8, k, v));
  for (const bool key : {true, false}) {
    const std::vector<float>& x = key ? k : v;
    const Int8Slot slot = ReadInt8(memory, key);
    float largest = 0;
    for (const float value : x) largest = std::max(largest, std::fabs(value));
    EXPECT_EQ(slot.scale, largest / 127.0f);
    for (size_t d = 0; d < x.size(); ++d) {
      EXPECT_EQ(slot.q[d], std::nearbyint(x[d] / slot.scale)) << d;
    }
  }
}

TEST_P(RowsTest, StoreKvQuantisesZerosAndWhatHasNoNormalScaleToZeros) {
  std::vector<float> k(34), v(34, 1e-38f);
  const std::vector<std::byte> memory = Stored(GetParam(), KvType::kInt8, k, v);
  EXPECT_EQ(memory, std::vector<std::byte>(memory.size()));
  k[3] = v[5] = kInf;
  EXPECT_EQ(Stored(GetParam(), KvType::kInt8, k, v), Stored("portable", KvType::kInt8, k, v));
}

INSTANTIATE_TEST_SUITE_P(Isas, RowsTest, testing::ValuesIn(IsasToTest()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace setu::kernels
