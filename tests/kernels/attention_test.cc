// SPDX-License-Identifier: Apache-2.0
// Attention over paged KV: near a naive double softmax of what is stored; the same bits on every
// ISA, however the rows are cut into chunks and whatever else is in the batch; blind to slots it
// does not own.
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/kernels/attention_fixture.h"

namespace setu::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

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

class AttentionTest : public testing::TestWithParam<std::string> {
 protected:
  bool Bf16() const { return GetParam().starts_with("bf16_"); }
  std::string Portable() const { return Bf16() ? "bf16_portable" : "portable"; }
  double Tolerance(KvType type) const {
    return Bf16() && (type == KvType::kBF16 || type == KvType::kInt8) ? 0.02 : 1e-5;
  }
};

TEST_P(AttentionTest, IsNearANaiveSoftmaxOfWhatIsStored) {
  for (const KvType type : kKvTypes) {
    const auto ops = MakeAttention(type, GetParam());
    for (const Case& c : kCases) {
      Sequence sequence(*ops, c, 1);
      std::vector<float> out;
      sequence.Chunk(0, c.tokens, out);
      const std::vector<double> expected = Naive(c, sequence);
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i], expected[i], Tolerance(type)) << KvTypeName(type) << ' ' << i;
      }
    }
  }
}

TEST_P(AttentionTest, HasTheBitsOfPortable) {
  for (const KvType type : kKvTypes) {
    const auto ops = MakeAttention(type, GetParam());
    const auto portable = MakeAttention(type, Portable(), 1);
    for (const Case& c : kCases) {
      EXPECT_TRUE(SameBits(Whole(*ops, c, 2), Whole(*portable, c, 2)))
          << KvTypeName(type) << ' ' << c.head_dim;
    }
  }
}

TEST_P(AttentionTest, CutsOfAPromptDoNotChangeBits) {
  for (const KvType type : kKvTypes) {
    const auto ops = MakeAttention(type, GetParam());
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
    const std::vector<float> expected = Whole(*MakeAttention(type, GetParam(), 1), c, 4);
    for (const int threads : {2, 3}) {
      const auto ops = MakeAttention(type, GetParam(), threads);
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
  const auto ops = MakeAttention(KvType::kBF16, GetParam());
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
    const auto ops = MakeAttention(type, GetParam(), 1);
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
    const auto ops = MakeAttention(type, GetParam());
    for (const int64_t tokens : {1, 15, 16, 17, 31, 32, 33}) {
      for (const float v : Whole(*ops, {.tokens = tokens}, 6)) ASSERT_TRUE(std::isfinite(v));
    }
  }
}

// Keys behind the window may have been given away: poisoned, they change nothing.
TEST_P(AttentionTest, NeverReadsKeysBehindTheWindow) {
  const auto ops = MakeAttention(KvType::kBF16, GetParam());
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

INSTANTIATE_TEST_SUITE_P(Isas, AttentionTest, testing::ValuesIn(AllAttentions()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace setu::kernels
