// SPDX-License-Identifier: Apache-2.0
// What the tests of attention share: one layer of paged KV, shapes, and what they run on.
#ifndef SETU_TESTS_KERNELS_ATTENTION_FIXTURE_H_
#define SETU_TESTS_KERNELS_ATTENTION_FIXTURE_H_

#include <cmath>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/half.h"
#include "kernels/kv_place.h"
#include "tests/kernels/kernels_fixture.h"
#include "tests/kernels/model_kernels.h"

namespace setu::kernels {

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
    std::vector<double> values = Unscaled(key, token, head);
    for (double& v : values) v *= Scale(key, token, head);
    return values;
  }
  // The same of int8 without its scale.
  std::vector<double> Unscaled(bool key, int64_t token, int64_t head) const {
    const std::byte* part = Part(key, token, head);
    const int64_t slot = token % c_.block_tokens;
    const KvPlace place = key ? KeyPlace(layer_.type, c_.head_dim, c_.block_tokens, slot)
                              : ValuePlace(layer_.type, c_.head_dim, slot);
    std::vector<double> values(c_.head_dim);
    for (int64_t d = 0; d < c_.head_dim; ++d) values[d] = ValueAt(part, IndexOf(place, d));
    return values;
  }
  float Scale(bool key, int64_t token, int64_t head) const {
    if (layer_.type != KvType::kInt8) return 1.0f;
    return Read<float>(Part(key, token, head) + c_.head_dim * c_.block_tokens,
                       token % c_.block_tokens);
  }

  std::vector<float> q, k, v;

 private:
  template <class T>
  static T Read(const std::byte* from, int64_t index) {
    T value;
    std::memcpy(&value, from + index * sizeof(T), sizeof(T));
    return value;
  }
  const std::byte* Part(bool key, int64_t token, int64_t head) const {
    const size_t head_bytes = KvHeadBytes(layer_.type, c_.head_dim, c_.block_tokens);
    return layer_.base + ids_[token / c_.block_tokens] * layer_.block_stride +
           (key ? head : c_.kv_heads + head) * head_bytes;
  }
  double ValueAt(const std::byte* part, int64_t index) const {
    switch (layer_.type) {
      case KvType::kF32:
        return Read<float>(part, index);
      case KvType::kF16:
        return HalfToFloat(Read<uint16_t>(part, index));
      case KvType::kBF16:
        return BfloatToFloat(Read<uint16_t>(part, index));
      case KvType::kInt8:
        return Read<int8_t>(part, index);
    }
    return 0;
  }

  Ops& ops_;
  const Case c_;
  std::vector<int32_t> ids_;
  std::vector<std::byte> memory_;
  KvLayer layer_;
};

inline std::vector<float> Whole(Ops& ops, const Case& c, uint32_t seed) {
  std::vector<float> out;
  Sequence(ops, c, seed).Chunk(0, c.tokens, out);
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

// An ISA, whose attention sums in f32; "bf16_" before it: as on the path bf16-tile, whose sums are
// others where K and V are in bf16 or int8. There are models of a tile unit, too.
inline std::unique_ptr<Ops> MakeAttention(KvType kv_type, const std::string& name,
                                          int threads = 2) {
  constexpr NumericPath kBf16 = NumericPath::kBf16Tile;
  if (name == "bf16_model") {
    return std::make_unique<CpuOps>(kBf16, kv_type, ModelKernels(), threads);
  }
  if (name == "bf16_model_avx512") {
    return std::make_unique<CpuOps>(kBf16, kv_type, ModelKernelsAvx512(), threads);
  }
  if (name.starts_with("bf16_")) return MakeOps(kBf16, name.substr(5), threads, kv_type);
  return MakeOps(NumericPath::kF32, name, threads, kv_type);
}

inline std::vector<std::string> Bf16Attentions() {
  std::vector<std::string> names;
  for (const std::string& isa : IsasToTest()) names.push_back("bf16_" + isa);
  names.push_back("bf16_model");
  if (__builtin_cpu_supports("avx512bf16")) names.push_back("bf16_model_avx512");
  return names;
}

inline std::vector<std::string> AllAttentions() {
  std::vector<std::string> names = IsasToTest();
  for (const std::string& name : Bf16Attentions()) names.push_back(name);
  return names;
}

}  // namespace setu::kernels

#endif  // SETU_TESTS_KERNELS_ATTENTION_FIXTURE_H_
