// SPDX-License-Identifier: Apache-2.0
// Attention by online softmax over key tiles (Dao et al., "FlashAttention", 2022), in the fixed
// order of rule 8: each query visits its own tiles in ascending order, one code path for prefill
// and decode. A score is 16 partial sums by index modulo 16 and the fixed tree; so is the
// normaliser; an output is one fma chain over ascending keys. Slots outside a query's own keys
// never reach it.
#ifndef SETU_KERNELS_CPU_ATTENTION_IMPL_H_
#define SETU_KERNELS_CPU_ATTENTION_IMPL_H_

#include "kernels/cpu/attention_layout.h"
#include "kernels/cpu/exp_impl.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/lanes_impl.h"

namespace setu::kernels {
namespace {

struct AttentionScratch {
  int64_t dim;    // head_dim in whole lanes; the rest is zero
  float* keys;    // [kKeyTile, dim]
  float* values;  // [kKeyTile, dim]
  float* q;       // [queries, dim]
  float* out;     // [queries, dim], not yet divided by the normaliser
  float* sums;    // [queries, 16]
  float* maxima;  // [queries]
};

// Keys [begin, end) of a tile, the same for all of its queries or one query's own.
struct KeyRange {
  int64_t begin, end;
};

inline KeyRange KeysOf(const AttentionArgs& args, int64_t row, int64_t tile) {
  const int64_t position = args.start + row, origin = tile * kKeyTile;
  const int64_t oldest = args.window > 0 ? Larger(0, position - args.window + 1) : 0;
  return {Larger(oldest - origin, 0), Smaller(position + 1 - origin, kKeyTile)};
}

inline void LoadVector(const uint8_t* from, KvType type, int64_t count, float* to) {
  for (int64_t d = 0; d < count; d += kLanes) {
    if (type == KvType::kF32) {
      Store(to + d, LoadPart(reinterpret_cast<const float*>(from) + d, count - d));
    } else {
      Store(to + d, LoadHalfPart(reinterpret_cast<const uint16_t*>(from) + d, count - d));
    }
  }
}

inline void LoadTile(const AttentionArgs& args, int64_t kv_head, int64_t tile, KeyRange range,
                     const AttentionScratch& scratch) {
  const int64_t vector = args.head_dim * (args.type == KvType::kF32 ? 4 : 2);
  const int64_t values = args.kv_heads * args.block_tokens * vector;
  for (int64_t key = range.begin; key < range.end; ++key) {
    const int64_t position = tile * kKeyTile + key;
    const int64_t slot = kv_head * args.block_tokens + position % args.block_tokens;
    const uint8_t* k =
        args.kv + args.blocks[position / args.block_tokens] * args.block_stride + slot * vector;
    LoadVector(k, args.type, args.head_dim, scratch.keys + key * scratch.dim);
    LoadVector(k + values, args.type, args.head_dim, scratch.values + key * scratch.dim);
  }
}

// Scores of one query with 16 keys.
inline F32x16 Scores(const AttentionArgs& args, const float* q, const float* keys, int64_t dim) {
  F32x16 dots[kLanes];
  for (F32x16& dot : dots) dot = Set1(0.0f);
  for (int64_t d = 0; d < dim; d += kLanes) {
    const F32x16 part = Load(q + d);
    for (int key = 0; key < kLanes; ++key) {
      dots[key] = Fma(part, Load(keys + key * dim + d), dots[key]);
    }
  }
  const F32x16 score = Mul(ReduceAdd16(dots), Set1(args.scale));
  if (args.soft_cap == 0.0f) return score;
  // cap * tanh(score / cap), tanh(x) = 1 - 2 / (e^2x + 1).
  const F32x16 x = Div(score, Set1(args.soft_cap));
  const F32x16 fraction = Div(Set1(2.0f), Add(ExpOf(Add(x, x)), Set1(1.0f)));
  return Mul(Set1(args.soft_cap), Sub(Set1(1.0f), fraction));
}

// out = out * decay + sum over the range's keys of p * value, `kVectors` lanes-vectors at once.
template <int kVectors>
inline void AddValues(const float* p, KeyRange range, const float* values, int64_t dim,
                      F32x16 decay, float* out) {
  F32x16 sum[kVectors];
  for (int i = 0; i < kVectors; ++i) sum[i] = Mul(Load(out + i * kLanes), decay);
  for (int64_t key = range.begin; key < range.end; ++key) {
    const F32x16 weight = Set1(p[key]);
    for (int i = 0; i < kVectors; ++i) {
      sum[i] = Fma(weight, Load(values + key * dim + i * kLanes), sum[i]);
    }
  }
  for (int i = 0; i < kVectors; ++i) Store(out + i * kLanes, sum[i]);
}

inline void VisitTile(const AttentionArgs& args, KeyRange range, int64_t query,
                      const AttentionScratch& scratch) {
  const int64_t dim = scratch.dim;
  alignas(64) float p[kKeyTile];
  for (int64_t half = 0; half < kKeyTile; half += kLanes) {
    Store(p + half, Scores(args, scratch.q + query * dim, scratch.keys + half * dim, dim));
  }
  for (int64_t key = 0; key < range.begin; ++key) p[key] = -__builtin_inff();
  for (int64_t key = range.end; key < kKeyTile; ++key) p[key] = -__builtin_inff();

  const F32x16 low = Load(p), high = Load(p + kLanes);
  const float before = scratch.maxima[query];
  const float tile_maximum = ReduceMax(Max(low, high));
  const float maximum = before > tile_maximum ? before : tile_maximum;
  scratch.maxima[query] = maximum;
  const F32x16 decay = ExpOf(Set1(before - maximum));
  const F32x16 p_low = ExpOf(Sub(low, Set1(maximum))), p_high = ExpOf(Sub(high, Set1(maximum)));
  Store(p, p_low);
  Store(p + kLanes, p_high);
  float* sums = scratch.sums + query * kLanes;
  Store(sums, Add(Fma(Load(sums), decay, p_low), p_high));

  float* out = scratch.out + query * dim;
  int64_t d = 0;
  for (; d + 4 * kLanes <= dim; d += 4 * kLanes) {
    AddValues<4>(p, range, scratch.values + d, dim, decay, out + d);
  }
  for (; d < dim; d += kLanes) AddValues<1>(p, range, scratch.values + d, dim, decay, out + d);
}

inline AttentionScratch Divide(float* memory, int64_t head_dim, int64_t queries) {
  AttentionScratch s;
  s.dim = RoundUpToLanes(head_dim);
  s.keys = memory;
  s.values = s.keys + kKeyTile * s.dim;
  s.q = s.values + kKeyTile * s.dim;
  s.out = s.q + queries * s.dim;
  s.sums = s.out + queries * s.dim;
  s.maxima = s.sums + queries * kLanes;
  return s;
}

void Attention(const AttentionArgs& args, int64_t kv_head, int64_t first, int64_t rows,
               float* memory) {
  const int64_t group = args.heads / args.kv_heads, queries = rows * group;
  const AttentionScratch scratch = Divide(memory, args.head_dim, queries);
  const int64_t dim = scratch.dim, column = kv_head * group * args.head_dim;
  memset(memory, 0, static_cast<size_t>(scratch.maxima - memory) * sizeof(float));
  for (int64_t i = 0; i < queries; ++i) {
    scratch.maxima[i] = -__builtin_inff();
    memcpy(scratch.q + i * dim,
           args.q + (first + i / group) * args.q_stride + column + i % group * args.head_dim,
           static_cast<size_t>(args.head_dim) * sizeof(float));
  }
  const int64_t last = first + rows - 1;
  const int64_t oldest = args.window > 0 ? Larger(0, args.start + first - args.window + 1) : 0;
  for (int64_t tile = oldest / kKeyTile; tile * kKeyTile <= args.start + last; ++tile) {
    LoadTile(args, kv_head, tile, {KeysOf(args, first, tile).begin, KeysOf(args, last, tile).end},
             scratch);
    for (int64_t i = 0; i < queries; ++i) {
      const KeyRange range = KeysOf(args, first + i / group, tile);
      if (range.begin < range.end) VisitTile(args, range, i, scratch);
    }
  }
  for (int64_t i = 0; i < queries; ++i) {
    const F32x16 total = Set1(ReduceAdd(Load(scratch.sums + i * kLanes)));
    float* out =
        args.out + (first + i / group) * args.out_stride + column + i % group * args.head_dim;
    for (int64_t d = 0; d < args.head_dim; d += kLanes) {
      StorePart(out + d, Div(Load(scratch.out + i * dim + d), total), args.head_dim - d);
    }
  }
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_ATTENTION_IMPL_H_
