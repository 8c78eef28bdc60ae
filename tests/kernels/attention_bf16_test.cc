// SPDX-License-Identifier: Apache-2.0
// Attention of the path bf16-tile over K and V in bf16 or int8: a scalar definition to the bit.
#include <cmath>
#include <limits>

#include "kernels/math.h"
#include "tests/kernels/attention_fixture.h"

namespace setu::kernels {
namespace {

constexpr int64_t kTile = 64;
constexpr float kLog2E = 0x1.715476p+0f, kInfinity = std::numeric_limits<float>::infinity();

float Bfloat(float x) { return BfloatToFloat(FloatToBfloat(x)); }

// 2^x, as far as weights need it.
float PowerOf2(float x) {
  const float t = std::max(x, -126.0f);
  const float n = std::nearbyint(t), r = t - n;
  float p = 0x1.409104p-7f;
  for (const float c : {0x1.ca9008p-5f, 0x1.ebf1b4p-3f, 0x1.62dfcap-1f, 1.0f}) {
    p = std::fma(p, r, c);
  }
  return std::ldexp(p, static_cast<int>(n));
}

// Rule 4 of the numeric paths: for each 32 terms a chain over the even ones and one over the odd.
class Sum {
 public:
  void Add(float a, float b) {
    float& chain = count_ % 2 == 0 ? even_ : odd_;
    chain = std::fma(a, b, chain);
    if (++count_ % 32 == 0) Close();
  }
  void Close() {
    value += even_ + odd_;
    even_ = odd_ = 0;
  }
  float value = 0;

 private:
  int64_t count_ = 0;
  float even_ = 0, odd_ = 0;
};

// One query, by online softmax over tiles of keys.
class Query {
 public:
  Query(const Case& c, const Sequence& s, int64_t row, int64_t head)
      : c_(c), s_(s), row_(row), kv_head_(head / (c.heads / c.kv_heads)) {
    const float* q = &s.q[(row * c.heads + head) * c.head_dim];
    for (int64_t d = 0; d < c.head_dim; ++d) q_.push_back(Bfloat(q[d]));
    out_.resize(c.head_dim);
    for (int64_t first = 0; first <= row; first += kTile) Visit(first);
  }

  std::vector<float> Result() {
    for (int distance = 8; distance > 0; distance /= 2) {
      for (int i = 0; i < distance; ++i) sums_[i] += sums_[i + distance];
    }
    for (float& v : out_) v = (v + 0.0f) / sums_[0];
    return out_;
  }

 private:
  bool Sees(int64_t token) const {
    return token <= row_ && (c_.window == 0 || token > row_ - c_.window);
  }

  float Score(int64_t token) const {
    const std::vector<double> key = s_.Unscaled(true, token, kv_head_);
    Sum dot;
    for (int64_t d = 0; d < c_.head_dim; ++d) dot.Add(q_[d], static_cast<float>(key[d]));
    dot.Close();
    const float score = dot.value * s_.Scale(true, token, kv_head_);
    return c_.soft_cap == 0 ? score : Capped(score);
  }

  float Capped(float dot) const {
    const float x = dot * s_.Shape().scale / c_.soft_cap;
    float e = 0;
    const float twice = x + x;
    ExpRow(&twice, 1, &e);
    return c_.soft_cap * (1.0f - 2.0f / (e + 1.0f));
  }

  void Visit(int64_t first) {
    const float factor = c_.soft_cap == 0 ? s_.Shape().scale * kLog2E : kLog2E;
    std::vector<float> scores(kTile, -kInfinity);
    float most = -kInfinity;
    for (int64_t i = 0; i < kTile; ++i) {
      if (Sees(first + i)) scores[i] = Score(first + i);
      most = std::max(most, scores[i]);
    }
    if (most == -kInfinity) return;
    if (most * factor > shift_ + 8.0f) {
      const float shrink = PowerOf2(shift_ - most * factor);
      for (float& v : out_) v *= shrink;
      for (float& v : sums_) v *= shrink;
      shift_ = most * factor;
    }
    std::vector<Sum> products(c_.head_dim);
    for (int64_t d = 0; d < c_.head_dim; ++d) products[d].value = out_[d];
    for (int64_t i = 0; i < kTile; ++i) {
      const bool seen = Sees(first + i);
      const float p = seen ? PowerOf2(std::fma(scores[i], factor, -shift_)) : 0.0f;
      sums_[i % 16] += p;
      const float weight = seen ? Bfloat(p * s_.Scale(false, first + i, kv_head_)) : 0.0f;
      std::vector<double> value(c_.head_dim);
      if (seen) value = s_.Unscaled(false, first + i, kv_head_);
      for (int64_t d = 0; d < c_.head_dim; ++d) {
        products[d].Add(weight, static_cast<float>(value[d]));
      }
    }
    for (int64_t d = 0; d < c_.head_dim; ++d) out_[d] = products[d].value;
  }

  const Case& c_;
  const Sequence& s_;
  const int64_t row_, kv_head_;
  std::vector<float> q_, out_;
  float sums_[16] = {}, shift_ = -kInfinity;
};

std::vector<float> Definition(const Case& c, const Sequence& s) {
  std::vector<float> out;
  for (int64_t row = 0; row < c.tokens; ++row) {
    for (int64_t head = 0; head < c.heads; ++head) {
      for (const float v : Query(c, s, row, head).Result()) out.push_back(v);
    }
  }
  return out;
}

class AttentionBf16Test : public testing::TestWithParam<std::string> {};

TEST_P(AttentionBf16Test, IsItsScalarDefinition) {
  std::vector<Case> cases(std::begin(kCases), std::end(kCases));
  cases.push_back({.heads = 6, .kv_heads = 2, .head_dim = 96, .tokens = 150, .block_tokens = 32});
  cases.push_back({.heads = 1, .kv_heads = 1, .head_dim = 256, .tokens = 70, .window = 20});
  cases.push_back({.heads = 8, .kv_heads = 8, .head_dim = 49, .tokens = 67, .soft_cap = 3.0f});
  for (const KvType type : {KvType::kBF16, KvType::kInt8}) {
    const auto ops = MakeAttention(type, GetParam());
    for (const Case& c : cases) {
      Sequence sequence(*ops, c, 1);
      std::vector<float> out;
      sequence.Chunk(0, c.tokens, out);
      EXPECT_TRUE(SameBits(out, Definition(c, sequence))) << KvTypeName(type) << ' ' << c.head_dim;
    }
  }
}

// Later keys score so much higher that the sums of the earlier ones shrink, some to nothing.
TEST_P(AttentionBf16Test, IsItsScalarDefinitionWhereScoresRise) {
  const Case c = {.heads = 4, .kv_heads = 2, .head_dim = 32, .tokens = 300};
  const int64_t kv_cols = c.kv_heads * c.head_dim;
  for (const KvType type : {KvType::kBF16, KvType::kInt8}) {
    const auto ops = MakeAttention(type, GetParam());
    Sequence sequence(*ops, c, 2);
    for (size_t i = 0; i < sequence.k.size(); ++i) {
      sequence.k[i] *= 0.1f * static_cast<float>(i / kv_cols);
    }
    std::vector<float> out;
    sequence.Chunk(0, c.tokens, out);
    EXPECT_TRUE(SameBits(out, Definition(c, sequence))) << KvTypeName(type);
  }
}

INSTANTIATE_TEST_SUITE_P(Names, AttentionBf16Test, testing::ValuesIn(Bf16Attentions()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace setu::kernels
