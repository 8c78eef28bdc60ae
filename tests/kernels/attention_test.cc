// SPDX-License-Identifier: Apache-2.0
// Attention over paged KV: near a naive double softmax of what is stored; the same bits on every
// ISA, however the rows are cut into chunks and whatever else is in the batch; blind to slots it
// does not own.
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cpu/half.h"
#include "tests/kernels/kernels_fixture.h"

namespace setu::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Case {
  int64_t heads = 4, kv_heads = 2, head_dim = 64, tokens = 70, block_tokens = 16;
  int64_t window = 0;
  float soft_cap = 0;
};

// One layer of KV whose blocks are handed out in a scattered order; every slot starts as NaN.
class Sequence {
 public:
  Sequence(Ops& ops, const Case& c, uint32_t seed) : ops_(ops), c_(c) {
    const int64_t blocks = (c.tokens + c.block_tokens - 1) / c.block_tokens;
    for (int64_t b = 0; b < blocks; ++b) ids_.push_back(static_cast<int32_t>(2 * (blocks - b)));
    const size_t stride =
        2 * c.kv_heads * KvHeadBytes(ops.kv_type(), c.head_dim, c.block_tokens) + 64;
    memory_.assign(stride * (2 * blocks + 1), std::byte{0xff});
    layer_ = {memory_.data(), stride, ops.kv_type(), c.kv_heads, c.head_dim, c.block_tokens};
    Random random(seed);
    q = random.Floats(c.tokens * c.heads * c.head_dim, 2.0f);
    k = random.Floats(c.tokens * c.kv_heads * c.head_dim, 2.0f);
    v = random.Floats(c.tokens * c.kv_heads * c.head_dim, 2.0f);
  }

  // Stores and attends the rows [begin, end), and appends what comes out.
  void Chunk(int64_t begin, int64_t end, std::vector<float>& out) {
    const int64_t kv_cols = c_.kv_heads * c_.head_dim, cols = c_.heads * c_.head_dim;
    const int64_t rows = end - begin;
    const SequenceRows s = {0, rows, begin, Blocks(end)};
    StoreKv(ops_, {k.data() + begin * kv_cols, rows, kv_cols, kv_cols},
            {v.data() + begin * kv_cols, rows, kv_cols, kv_cols}, s, layer_);
    const size_t before = out.size();
    out.resize(before + rows * cols);
    ops_.Attention({q.data() + begin * cols, rows, cols, cols}, {&s, 1}, Shape(), layer_,
                   {out.data() + before, rows, cols, cols});
  }

  std::span<const int32_t> Blocks(int64_t tokens) const {
    return {ids_.data(), static_cast<size_t>((tokens + c_.block_tokens - 1) / c_.block_tokens)};
  }
  AttentionShape Shape() const {
    return {c_.heads, 1.0f / std::sqrt(static_cast<float>(c_.head_dim)), c_.soft_cap, c_.window};
  }
  const KvLayer& layer() const { return layer_; }

  // What is stored of K (else V) of a token: [head_dim].
  std::vector<double> Stored(bool key, int64_t token, int64_t head) const {
    const size_t head_bytes = KvHeadBytes(layer_.type, c_.head_dim, c_.block_tokens);
    const std::byte* part = layer_.base + ids_[token / c_.block_tokens] * layer_.block_stride +
                            (key ? head : c_.kv_heads + head) * head_bytes;
    const int64_t slot = token % c_.block_tokens;
    std::vector<double> values(c_.head_dim);
    for (int64_t d = 0; d < c_.head_dim; ++d) {
      values[d] = ValueAt(part, key ? d * c_.block_tokens + slot : slot * c_.head_dim + d, slot);
    }
    return values;
  }

  std::vector<float> q, k, v;

 private:
  template <class T>
  static T Read(const std::byte* from, int64_t index) {
    T value;
    std::memcpy(&value, from + index * sizeof(T), sizeof(T));
    return value;
  }
  double ValueAt(const std::byte* part, int64_t index, int64_t slot) const {
    switch (layer_.type) {
      case KvType::kF32:
        return Read<float>(part, index);
      case KvType::kF16:
        return HalfToFloat(Read<uint16_t>(part, index));
      case KvType::kBF16:
        return BfloatToFloat(Read<uint16_t>(part, index));
      case KvType::kInt8:
        return Read<int8_t>(part, index) *
               double{Read<float>(part + c_.head_dim * c_.block_tokens, slot)};
    }
    return 0;
  }

  Ops& ops_;
  const Case c_;
  std::vector<int32_t> ids_;
  std::vector<std::byte> memory_;
  KvLayer layer_;
};

std::vector<float> Whole(Ops& ops, const Case& c, uint32_t seed) {
  std::vector<float> out;
  Sequence(ops, c, seed).Chunk(0, c.tokens, out);
  return out;
}

// Softmax over all keys at once, in double.
std::vector<double> Naive(const Case& c, const Sequence& s) {
  std::vector<double> out;
  for (int64_t row = 0; row < c.tokens; ++row) {
    for (int64_t h = 0; h < c.heads; ++h) {
      const int64_t kv_head = h / (c.heads / c.kv_heads);
      const float* q = &s.q[(row * c.heads + h) * c.head_dim];
      const int64_t oldest = c.window > 0 ? std::max<int64_t>(0, row - c.window + 1) : 0;
      double total = 0;
      std::vector<double> sum(c.head_dim);
      for (int64_t token = oldest; token <= row; ++token) {
        const std::vector<double> key = s.Stored(true, token, kv_head);
        double score = std::inner_product(key.begin(), key.end(), q, 0.0);
        score /= std::sqrt(static_cast<double>(c.head_dim));
        if (c.soft_cap > 0) score = c.soft_cap * std::tanh(score / c.soft_cap);
        const double p = std::exp(score);
        total += p;
        const std::vector<double> value = s.Stored(false, token, kv_head);
        for (int64_t d = 0; d < c.head_dim; ++d) sum[d] += p * value[d];
      }
      for (const double v : sum) out.push_back(v / total);
    }
  }
  return out;
}

const Case kCases[] = {
    {},
    {.heads = 3, .kv_heads = 1, .head_dim = 64, .tokens = 33},
    {.heads = 2, .kv_heads = 2, .head_dim = 80, .tokens = 40, .block_tokens = 48},
    {.heads = 2, .kv_heads = 1, .head_dim = 6, .tokens = 100, .block_tokens = 64},
    {.heads = 40, .kv_heads = 1, .head_dim = 32, .tokens = 35},
    {.heads = 8, .kv_heads = 2, .head_dim = 128, .tokens = 37},
    {.tokens = 130, .window = 37},
    {.tokens = 66, .soft_cap = 5.0f},
};

constexpr KvType kKvTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8};

// The products of the path do not matter here.
std::unique_ptr<Ops> MakeOps(KvType kv_type, const std::string& isa, int threads = 2) {
  return MakeOps(NumericPath::kF32, isa, threads, kv_type);
}

class AttentionTest : public testing::TestWithParam<std::string> {};

TEST_P(AttentionTest, IsNearANaiveSoftmaxOfWhatIsStored) {
  for (const KvType type : kKvTypes) {
    const auto ops = MakeOps(type, GetParam());
    for (const Case& c : kCases) {
      Sequence sequence(*ops, c, 1);
      std::vector<float> out;
      sequence.Chunk(0, c.tokens, out);
      const std::vector<double> expected = Naive(c, sequence);
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i], expected[i], 1e-5) << KvTypeName(type) << ' ' << i;
      }
    }
  }
}

TEST_P(AttentionTest, HasTheBitsOfPortable) {
  for (const KvType type : kKvTypes) {
    const auto ops = MakeOps(type, GetParam());
    const auto portable = MakeOps(type, "portable", 1);
    for (const Case& c : kCases) {
      EXPECT_TRUE(SameBits(Whole(*ops, c, 2), Whole(*portable, c, 2)))
          << KvTypeName(type) << ' ' << c.head_dim;
    }
  }
}

TEST_P(AttentionTest, CutsOfAPromptDoNotChangeBits) {
  for (const KvType type : kKvTypes) {
    const auto ops = MakeOps(type, GetParam());
    for (const Case& c : kCases) {
      const std::vector<float> whole = Whole(*ops, c, 3);
      for (const int64_t chunk : {1, 5, 16, 32}) {
        Sequence sequence(*ops, c, 3);
        std::vector<float> out;
        for (int64_t begin = 0; begin < c.tokens; begin += chunk) {
          sequence.Chunk(begin, std::min(c.tokens, begin + chunk), out);
        }
        EXPECT_TRUE(SameBits(out, whole))
            << KvTypeName(type) << ' ' << c.head_dim << " chunk " << chunk;
      }
    }
  }
}

TEST_P(AttentionTest, BlockSizeAndThreadsDoNotChangeBits) {
  const Case c = {.tokens = 90, .window = 50};
  for (const KvType type : kKvTypes) {
    const std::vector<float> expected = Whole(*MakeOps(type, GetParam(), 1), c, 4);
    for (const int threads : {2, 3}) {
      const auto ops = MakeOps(type, GetParam(), threads);
      for (const int64_t block_tokens : {16, 32, 48, 128}) {
        Case other = c;
        other.block_tokens = block_tokens;
        EXPECT_TRUE(SameBits(Whole(*ops, other, 4), expected))
            << KvTypeName(type) << ' ' << block_tokens;
      }
    }
  }
}

// Two sequences in one batch, one decoding and one in a chunk, as each alone.
TEST_P(AttentionTest, OtherSequencesDoNotChangeBits) {
  const auto ops = MakeOps(NumericPath::kInt8G32, GetParam());
  const Case c = {.tokens = 64};
  const int64_t cols = c.heads * c.head_dim;
  Sequence sequence(*ops, c, 5);
  std::vector<float> whole;
  sequence.Chunk(0, 64, whole);
  // Rows 40 .. 63 of the sequence first, then row 17 as if it were decoded.
  std::vector<float> q(sequence.q.begin() + 40 * cols, sequence.q.end());
  q.insert(q.end(), sequence.q.begin() + 17 * cols, sequence.q.begin() + 18 * cols);
  const SequenceRows rows[] = {{0, 24, 40, sequence.Blocks(64)}, {24, 1, 17, sequence.Blocks(18)}};
  std::vector<float> out(25 * cols);
  ops->Attention(View(std::as_const(q), 25, cols), rows, sequence.Shape(), sequence.layer(),
                 View(out, 25, cols));
  std::vector<float> expected(whole.begin() + 40 * cols, whole.end());
  expected.insert(expected.end(), whole.begin() + 17 * cols, whole.begin() + 18 * cols);
  EXPECT_TRUE(SameBits(out, expected));
}

// Many sequences that each decode a row: a piece takes several KV heads, which the chunk's do not.
TEST_P(AttentionTest, HeadsOfOnePieceDoNotChangeBits) {
  for (const KvType type : kKvTypes) {
    const auto ops = MakeOps(type, GetParam(), 1);
    for (const int64_t head_dim : {64, 80, 6}) {
      const Case c = {.heads = 16, .kv_heads = 8, .head_dim = head_dim, .tokens = 70};
      const int64_t cols = c.heads * c.head_dim;
      Sequence sequence(*ops, c, 8);
      std::vector<float> whole, q, expected;
      sequence.Chunk(0, c.tokens, whole);
      std::vector<SequenceRows> rows;
      for (const int64_t position : {69, 3, 31, 32, 50, 63, 64, 17}) {
        rows.push_back({std::ssize(rows), 1, position, sequence.Blocks(position + 1)});
        const auto copy_row = [&](const std::vector<float>& from, std::vector<float>& to) {
          to.insert(to.end(), from.begin() + position * cols, from.begin() + (position + 1) * cols);
        };
        copy_row(sequence.q, q);
        copy_row(whole, expected);
      }
      std::vector<float> out(q.size());
      ops->Attention(View(std::as_const(q), std::ssize(rows), cols), rows, sequence.Shape(),
                     sequence.layer(), View(out, std::ssize(rows), cols));
      EXPECT_TRUE(SameBits(out, expected)) << KvTypeName(type) << ' ' << head_dim;
    }
  }
}

// Every slot that was never written holds NaN (0xff bytes): nothing of it may come out.
TEST_P(AttentionTest, NeverReadsSlotsBeyondTheSequence) {
  for (const KvType type : kKvTypes) {
    const auto ops = MakeOps(type, GetParam());
    for (const int64_t tokens : {1, 15, 16, 17, 31, 32, 33}) {
      for (const float v : Whole(*ops, {.tokens = tokens}, 6)) ASSERT_TRUE(std::isfinite(v));
    }
  }
}

// Keys behind the window may have been given away: poisoned, they change nothing.
TEST_P(AttentionTest, NeverReadsKeysBehindTheWindow) {
  const auto ops = MakeOps(NumericPath::kInt8G32, GetParam());
  const Case c = {.tokens = 100, .window = 40};
  const int64_t kv_cols = c.kv_heads * c.head_dim;
  Sequence clean(*ops, c, 7), poisoned(*ops, c, 7);
  std::vector<float> expected, out, unused;
  clean.Chunk(0, 99, unused);
  clean.Chunk(99, 100, expected);
  std::fill_n(poisoned.k.begin(), 60 * kv_cols, kNan);
  std::fill_n(poisoned.v.begin(), 60 * kv_cols, kNan);
  poisoned.Chunk(0, 99, unused);
  poisoned.Chunk(99, 100, out);
  EXPECT_TRUE(SameBits(out, expected));
}

INSTANTIATE_TEST_SUITE_P(Isas, AttentionTest, testing::ValuesIn(IsasToTest()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace setu::kernels
