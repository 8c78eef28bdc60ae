// SPDX-License-Identifier: Apache-2.0
// Attention by online softmax over key tiles (Dao et al., "FlashAttention", 2022), in the fixed
// order of rule 8: each query visits its own tiles in ascending order, one code path for prefill
// and decode. A score is one fma chain over ascending dims, an output one over ascending keys; the
// normaliser is 16 partial sums by index modulo 16 and the fixed tree. Slots outside a query's own
// keys never reach it. K lies dim by dim: a vector holds 16 keys, and no score needs a sum over
// lanes.
#ifndef SETU_KERNELS_CPU_ATTENTION_IMPL_H_
#define SETU_KERNELS_CPU_ATTENTION_IMPL_H_

#include "kernels/cpu/attention_layout.h"
#include "kernels/cpu/exp_impl.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/kv_tile_impl.h"
#include "kernels/cpu/lanes_impl.h"

namespace setu::kernels {
namespace {

struct AttentionScratch {
  int64_t dim;    // head_dim in whole lanes; the rest is zero
  float* keys;    // [dim, kKeyTile]
  float* values;  // [kKeyTile, dim]
  float* q;       // [queries, dim]
  float* out;     // [queries, dim], not yet divided by the normaliser
  float* sums;    // [queries, 16]
  float* maxima;  // [queries]
};

inline F32x16 Scaled(const AttentionArgs& args, F32x16 dot) {
  const F32x16 score = Mul(dot, Set1(args.scale));
  if (args.soft_cap == 0.0f) return score;
  // cap * tanh(score / cap), tanh(x) = 1 - 2 / (e^2x + 1).
  const F32x16 x = Div(score, Set1(args.soft_cap));
  const F32x16 fraction = Div(Set1(2.0f), Add(ExpOf(Add(x, x)), Set1(1.0f)));
  return Mul(Set1(args.soft_cap), Sub(Set1(1.0f), fraction));
}

// Scores of kQueries queries with all keys of the tile, p [queries, kKeyTile]. Not inlined: what
// the compiler would keep from one call to the next has no room in registers.
template <int kQueries, class Tile, class Dim>
[[gnu::noinline]] void Score(const AttentionArgs& args, const float* q, const Tile& tile, Dim dim,
                             float* p) {
  constexpr int kLineDims = 4;  // sixteen keys have of so many dims a line or whole lines
  F32x16 dots[kQueries][2];
  for (int i = 0; i < kQueries; ++i) dots[i][0] = dots[i][1] = Set1(0.0f);
  for (int64_t first = 0; first < dim; first += kLineDims) {
    const auto add = [&]<int kDim>() {
      const int64_t d = first + kDim;
      // Rows of sixteen keys share a line with others before and behind.
      if constexpr (Tile::kInBlocks && kDim % (4 / BytesOf(Tile::kType)) == 0) {
        __builtin_prefetch(tile.next_keys[0] + d * tile.key_stride, 0, 3);
        __builtin_prefetch(tile.next_keys[1] + d * tile.key_stride, 0, 3);
      }
      const F32x16 low = LoadKeys<kDim % 2 != 0>(tile, 0, d);
      const F32x16 high = LoadKeys<kDim % 2 != 0>(tile, 1, d);
      for (int i = 0; i < kQueries; ++i) {
        const F32x16 x = InRegister(Set1(q[i * dim + d]));
        dots[i][0] = Fma(x, low, dots[i][0]);
        dots[i][1] = Fma(x, high, dots[i][1]);
      }
    };
    Unroll<0, kLineDims>(add);
  }
  for (int half = 0; half < 2; ++half) {
    const float* scales = tile.key_scales[half];
    for (int i = 0; i < kQueries; ++i) {
      const F32x16 dot = dots[i][half];
      Store(p + i * kKeyTile + half * kLanes,
            Scaled(args, scales == nullptr ? dot : Mul(dot, Load(scales))));
    }
  }
}

// The largest score of one query so far, its tile's scores p [kKeyTile] included, of which those
// outside `range` become -inf.
inline float Maximum(KeyRange range, float before, float* p) {
  for (int64_t key = 0; key < range.begin; ++key) p[key] = -__builtin_inff();
  for (int64_t key = range.end; key < kKeyTile; ++key) p[key] = -__builtin_inff();
  const float tile_maximum = ReduceMax(Max(Load(p), Load(p + kLanes)));
  return before > tile_maximum ? before : tile_maximum;
}

// Of one query: scores p become weights of the values as they lie, relative to `maximum`; what the
// earlier tiles gave shrinks by `decay`.
template <class Tile>
inline void Weigh(const Tile& tile, float maximum, F32x16 decay, float* sums, float* p) {
  const F32x16 low = ExpOfNegative(Sub(Load(p), Set1(maximum)));
  const F32x16 high = ExpOfNegative(Sub(Load(p + kLanes), Set1(maximum)));
  const bool scaled = tile.value_scales[0] != nullptr;
  Store(p, scaled ? Mul(low, Load(tile.value_scales[0])) : low);
  Store(p + kLanes, scaled ? Mul(high, Load(tile.value_scales[1])) : high);
  Store(sums, Add(Fma(Load(sums), decay, low), high));
}

// Memory is to be busy all the time: of the next tile's V, what the first sixteen keys have is
// fetched between the weights of one query and the next, ...
template <int kQueries, class Tile>
inline void FetchFirst(const Tile& tile, int i) {
  const int64_t bytes = kLanes * tile.value_stride;
  for (int64_t at = i * bytes / kQueries; at < (i + 1) * bytes / kQueries; at += 64) {
    __builtin_prefetch(tile.next_values[0] + at, 0, 3);
  }
}
// ...and the others' between the keys.
template <int kVectors, class Tile>
inline void FetchSecond(const Tile& tile, int64_t key, int64_t d) {
  constexpr int64_t kBytes = kVectors * kLanes * BytesOf(Tile::kType) / 2;  // a key
  const int64_t place = key * tile.value_stride / 2 + d * BytesOf(Tile::kType) / 2;
  if (kBytes < 64 && place % 64 != 0) return;
  for (int64_t at = 0; at < kBytes; at += 64) {
    __builtin_prefetch(tile.next_values[1] + place + at, 0, 3);
  }
}

// out = out * decay + sum over the range's keys of p * value, of `kQueries` queries and `kVectors`
// vectors of lanes at once, from dim `d` on.
template <int kQueries, int kVectors, class Tile, class Dim>
[[gnu::noinline]] void AddValues(const float* p, KeyRange range, const Tile& tile, int64_t d,
                                 Dim dim, const F32x16* decays, float* out) {
  F32x16 sums[kQueries][kVectors];
  for (int i = 0; i < kQueries; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      sums[i][v] = Mul(Load(out + i * dim + v * kLanes), decays[i]);
    }
  }
  for (int half = 0; half < 2; ++half) {
    const int64_t end = Smaller(range.end, (half + 1) * kLanes);
    for (int64_t key = Larger(range.begin, half * kLanes); key < end; ++key) {
      constexpr int64_t kStep = ValueStep(Tile::kType);
      const int64_t place =
          ValueRow<Tile::kType>(key - half * kLanes, tile.value_stride) + d * kStep;
      if constexpr (Tile::kInBlocks) FetchSecond<kVectors>(tile, key, d);
      F32x16 value[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        value[v] = InRegister(
            LoadValues<Tile::kType>(tile.values[half] + place + v * kLanes * kStep, key % 2 != 0));
      }
      for (int i = 0; i < kQueries; ++i) {
        const F32x16 weight = Set1(p[i * kKeyTile + key]);
        for (int v = 0; v < kVectors; ++v) sums[i][v] = Fma(weight, value[v], sums[i][v]);
      }
    }
  }
  for (int i = 0; i < kQueries; ++i) {
    for (int v = 0; v < kVectors; ++v) Store(out + i * dim + v * kLanes, sums[i][v]);
  }
}

// `kQueries` queries from `query` on that see the same keys of the tile.
template <int kQueries, class Tile, class Dim>
inline void VisitTile(const AttentionArgs& args, const Tile& tile, KeyRange range, int64_t query,
                      Dim dim, const AttentionScratch& scratch) {
  alignas(64) float p[kQueries * kKeyTile];
  Score<kQueries>(args, scratch.q + query * dim, tile, dim, p);
  float* maxima = scratch.maxima + query;
  float before[kQueries];
  for (int i = 0; i < kQueries; ++i) {
    before[i] = maxima[i];
    maxima[i] = Maximum(range, before[i], p + i * kKeyTile);
  }
  F32x16 decays[kQueries];
  for (int i = 0; i < kQueries; ++i) {
    if constexpr (Tile::kInBlocks) FetchFirst<kQueries>(tile, i);
    // Most tiles bring no new maximum: e^0 is 1 without computing it.
    decays[i] = before[i] == maxima[i] ? Set1(1.0f) : ExpOf(Set1(before[i] - maxima[i]));
    Weigh(tile, maxima[i], decays[i], scratch.sums + (query + i) * kLanes, p + i * kKeyTile);
  }
  float* out = scratch.out + query * dim;
  int64_t d = 0;
  for (; d + kValueVectors * kLanes <= dim; d += kValueVectors * kLanes) {
    AddValues<kQueries, kValueVectors>(p, range, tile, d, dim, decays, out + d);
  }
  for (; d < dim; d += kLanes) {
    AddValues<kQueries, 1>(p, range, tile, d, dim, decays, out + d);
  }
}

// The queries of all rows, those with the same keys of the tile together.
template <class Tile, class Dim>
inline void VisitRows(const AttentionArgs& args, const Tile& kv, int64_t tile, int64_t first,
                      int64_t rows, Dim dim, const AttentionScratch& scratch) {
  const int64_t group = args.heads / args.kv_heads;
  for (int64_t row = 0; row < rows;) {
    const KeyRange range = KeysOf(args, first + row, tile);
    int64_t end = row + 1;  // of the rows that see the same keys
    while (end < rows && KeysOf(args, first + end, tile) == range) ++end;
    const auto queries_at = [&]<int kQueries>(int64_t i) {
      VisitTile<kQueries>(args, kv, range, i, dim, scratch);
    };
    if (range.begin < range.end) ForRowBlocks<kQueryBlock>(row * group, end * group, queries_at);
    row = end;
  }
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

// Of the piece's KV head number `head`, which has `queries` of the piece's queries.
inline AttentionScratch PartOf(const AttentionScratch& all, int64_t head, int64_t queries) {
  AttentionScratch part = all;
  part.q += head * queries * all.dim;
  part.out += head * queries * all.dim;
  part.sums += head * queries * kLanes;
  part.maxima += head * queries;
  return part;
}

// Offset in args.q, and in args.out with its stride, of the piece's query number `i`.
inline int64_t PlaceOf(const AttentionArgs& args, const AttentionPiece& piece, int64_t i,
                       int64_t stride) {
  const int64_t group = args.heads / args.kv_heads, queries = piece.rows * group;
  const int64_t head = (piece.kv_head + i / queries) * group + i % group;
  return (piece.first + i % queries / group) * stride + head * args.head_dim;
}

// One tile for all queries of one KV head.
template <KvType kType, class Dim>
inline void AttendTile(const AttentionArgs& args, int64_t kv_head, int64_t tile, int64_t first,
                       int64_t rows, Dim dim, const AttentionScratch& scratch) {
  const int64_t last = first + rows - 1;
  const KeyRange range = {KeysOf(args, first, tile).begin, KeysOf(args, last, tile).end};
  TileOfBlocks<kType> kv = TileInBlocks<kType>(args, kv_head, tile, range);
  const KeyRange next_range = {0, KeysOf(args, last, tile + 1).end};
  if (next_range.end > 0) {
    const TileOfBlocks<kType> next = TileInBlocks<kType>(args, kv_head, tile + 1, next_range);
    for (int half = 0; half < 2; ++half) {
      kv.next_keys[half] = next.keys[half];
      kv.next_values[half] = next.values[half];
      if constexpr (kType == KvType::kInt8) {
        __builtin_prefetch(next.key_scales[half], 0, 3);
        __builtin_prefetch(next.value_scales[half], 0, 3);
      }
    }
  }
  if (rows * (args.heads / args.kv_heads) <= kInPlaceQueries && args.head_dim == dim) {
    VisitRows(args, kv, tile, first, rows, dim, scratch);
  } else {
    const TileOfFloats floats = Expand(args, kv, range, scratch.dim, scratch.keys, scratch.values);
    VisitRows(args, floats, tile, first, rows, dim, scratch);
  }
}

// Dim: the padded head_dim, a constant where that makes every address one.
template <KvType kType, class Dim>
inline void Attend(const AttentionArgs& args, const AttentionPiece& piece, Dim dim, float* memory) {
  const int64_t each = piece.rows * (args.heads / args.kv_heads), queries = each * piece.kv_heads;
  const AttentionScratch scratch = Divide(memory, args.head_dim, queries);
  memset(memory, 0, static_cast<size_t>(scratch.maxima - memory) * sizeof(float));
  for (int64_t i = 0; i < queries; ++i) {
    scratch.maxima[i] = -__builtin_inff();
    memcpy(scratch.q + i * dim, args.q + PlaceOf(args, piece, i, args.q_stride),
           static_cast<size_t>(args.head_dim) * sizeof(float));
  }
  const int64_t oldest =
      args.window > 0 ? Larger(0, args.start + piece.first - args.window + 1) : 0;
  const int64_t newest = args.start + piece.first + piece.rows - 1;
  for (int64_t tile = oldest / kKeyTile; tile * kKeyTile <= newest; ++tile) {
    for (int64_t head = 0; head < piece.kv_heads; ++head) {
      AttendTile<kType>(args, piece.kv_head + head, tile, piece.first, piece.rows, dim,
                        PartOf(scratch, head, each));
    }
  }
  for (int64_t i = 0; i < queries; ++i) {
    const F32x16 total = Set1(ReduceAdd(Load(scratch.sums + i * kLanes)));
    float* out = args.out + PlaceOf(args, piece, i, args.out_stride);
    for (int64_t d = 0; d < args.head_dim; d += kLanes) {
      StorePart(out + d, Div(Load(scratch.out + i * dim + d), total), args.head_dim - d);
    }
  }
}

void Attention(const AttentionArgs& args, const AttentionPiece& piece, float* memory) {
  WithKvType(args.type, [&]<KvType kType>() {
    switch (RoundUpToLanes(args.head_dim)) {
      case 64:
        return Attend<kType>(args, piece, Constant<64>{}, memory);
      case 128:
        return Attend<kType>(args, piece, Constant<128>{}, memory);
      default:
        return Attend<kType>(args, piece, RoundUpToLanes(args.head_dim), memory);
    }
  });
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_ATTENTION_IMPL_H_
