// SPDX-License-Identifier: Apache-2.0
// A tile of 32 keys and values: where it lies in the blocks of a KV head, as they are typed there,
// or expanded to floats.
#ifndef SETU_KERNELS_CPU_KV_TILE_IMPL_H_
#define SETU_KERNELS_CPU_KV_TILE_IMPL_H_

#include "kernels/cpu/attention_layout.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/lanes_impl.h"
#include "kernels/kv_place.h"

namespace setu::kernels {
namespace {

// The keys and values of a tile, sixteen and sixteen: as they lie in their blocks, or expanded in
// scratch (where nothing need be fetched). Strides in bytes.
template <KvType kTypeOfTile, bool kWhere>
struct KvTile {
  static constexpr KvType kType = kTypeOfTile;
  static constexpr bool kInBlocks = kWhere;
  const uint8_t* keys[2];            // rows of sixteen keys, one per dim, of bf16 two dims
  const uint8_t* values[2];          // rows of head_dim values, one per key, of bf16 two keys
  int64_t key_stride, value_stride;  // of one dim, and of one key
  const float* key_scales[2];        // [16] of int8, also where its values are expanded; else null
  const float* value_scales[2];      // the same
  // Where the same keys and values of the next tile lie, to be fetched while this one is worked on:
  // blocks lie far from each other, so that no hardware sees them coming.
  const uint8_t* next_keys[2];
  const uint8_t* next_values[2];
};

template <KvType kType>
using TileOfBlocks = KvTile<kType, true>;
using TileOfFloats = KvTile<KvType::kF32, false>;

// Keys [begin, end) of a tile, the same for all of its queries or one query's own.
struct KeyRange {
  int64_t begin, end;
  bool operator==(const KeyRange&) const = default;
};

inline KeyRange KeysOf(const AttentionArgs& args, int64_t row, int64_t tile) {
  const int64_t position = args.start + row, origin = tile * kKeyTile;
  const int64_t oldest = args.window > 0 ? Larger(0, position - args.window + 1) : 0;
  return {Larger(oldest - origin, 0), Smaller(position + 1 - origin, kKeyTile)};
}

constexpr int64_t BytesOf(KvType type) {
  return type == KvType::kF32 ? 4 : type == KvType::kInt8 ? 1 : 2;
}

// Sixteen values as floats; of int8 without their scale.
template <KvType kType>
inline F32x16 LoadKv(const uint8_t* from) {
  if constexpr (kType == KvType::kF32) {
    return Load(reinterpret_cast<const float*>(from));
  } else if constexpr (kType == KvType::kF16) {
    return LoadHalf(reinterpret_cast<const uint16_t*>(from));
  } else if constexpr (kType == KvType::kBF16) {
    return LoadBfloat(reinterpret_cast<const uint16_t*>(from));
  } else {
    return ToFloat(LoadS8(from));
  }
}

// The first `count` of them, the others zero.
template <KvType kType>
inline F32x16 LoadKvPart(const uint8_t* from, int64_t count) {
  if (count >= kLanes) return LoadKv<kType>(from);
  uint8_t padded[kLanes * BytesOf(kType)] = {};
  memcpy(padded, from, static_cast<size_t>(count * BytesOf(kType)));
  return LoadKv<kType>(padded);
}

// Of pairs of bfloat16s.
inline F32x16 EvenOf(I32x16 pairs) { return BitCast(ShiftLeft<16>(pairs)); }
inline F32x16 OddOf(I32x16 pairs) { return BitCast(AndI(pairs, Set1I(-0x10000))); }

// Sixteen keys' dim `d`, which is odd or not; of int8 without their scales.
template <bool kOdd, class Tile>
inline F32x16 LoadKeys(const Tile& tile, int half, int64_t d) {
  if constexpr (Tile::kType == KvType::kBF16) {
    const I32x16 pairs = LoadBytes(tile.keys[half] + (d - kOdd) * tile.key_stride);
    return kOdd ? OddOf(pairs) : EvenOf(pairs);
  } else {
    return LoadKv<Tile::kType>(tile.keys[half] + d * tile.key_stride);
  }
}

// Bytes from a value of V to the next of the same key.
constexpr int64_t ValueStep(KvType type) { return type == KvType::kBF16 ? 4 : BytesOf(type); }
// Offset of a key's row of V; a pair of keys has one together.
template <KvType kType>
inline int64_t ValueRow(int64_t key, int64_t stride) {
  return (kType == KvType::kBF16 ? key / 2 * 2 : key) * stride;
}
// The first `count` of sixteen values of a key that is odd or not, the others zero.
template <KvType kType>
inline F32x16 LoadValues(const uint8_t* from, bool odd, int64_t count = kLanes) {
  if constexpr (kType == KvType::kBF16) {
    I32x16 pairs;
    if (count >= kLanes) {
      pairs = LoadBytes(from);
    } else {
      uint8_t padded[64] = {};
      memcpy(padded, from, static_cast<size_t>(count * 4));
      pairs = LoadBytes(padded);
    }
    return odd ? OddOf(pairs) : EvenOf(pairs);
  } else {
    return LoadKvPart<kType>(from, count);
  }
}

// f.template operator()<type>().
template <class F>
inline void WithKvType(KvType type, const F& f) {
  switch (type) {
    case KvType::kF32:
      return f.template operator()<KvType::kF32>();
    case KvType::kF16:
      return f.template operator()<KvType::kF16>();
    case KvType::kBF16:
      return f.template operator()<KvType::kBF16>();
    case KvType::kInt8:
      return f.template operator()<KvType::kInt8>();
  }
}

// Where the keys of `range`, which is not empty, lie. A half of the tile without any may have no
// block: what is read in its place never counts.
template <KvType kType>
inline TileOfBlocks<kType> TileInBlocks(const AttentionArgs& args, int64_t kv_head, int64_t tile,
                                        KeyRange range) {
  constexpr int64_t kValue = BytesOf(kType);
  TileOfBlocks<kType> t = {};
  t.key_stride = (kType == KvType::kBF16 ? kLanes : args.block_tokens) * kValue;
  t.value_stride = args.head_dim * kValue;
  for (int64_t half = 0; half < 2; ++half) {
    const bool owned = range.begin < (half + 1) * kLanes && range.end > half * kLanes;
    const int64_t position = tile * kKeyTile + (owned ? half : 1 - half) * kLanes;
    const int64_t slot = position % args.block_tokens;
    const uint8_t* block = args.kv + args.blocks[position / args.block_tokens] * args.block_stride;
    const uint8_t* keys = block + kv_head * args.head_bytes;
    const uint8_t* values = keys + args.kv_heads * args.head_bytes;
    t.keys[half] = keys + KeyPlace(kType, args.head_dim, args.block_tokens, slot).first * kValue;
    t.values[half] = values + slot * t.value_stride;
    if constexpr (kType == KvType::kInt8) {
      const int64_t scales = args.head_dim * args.block_tokens + slot * sizeof(float);
      t.key_scales[half] = reinterpret_cast<const float*>(keys + scales);
      t.value_scales[half] = reinterpret_cast<const float*>(values + scales);
    }
    t.next_keys[half] = t.keys[half];
    t.next_values[half] = t.values[half];
  }
  return t;
}

// The same tile as floats, in `keys` [head_dim, kKeyTile] and `values` [kKeyTile, dim], for many
// queries. Whole vectors of keys: lanes of slots that no query
// owns hold whatever lies there, and stay apart.
template <KvType kType>
inline TileOfFloats Expand(const AttentionArgs& args, const TileOfBlocks<kType>& from,
                           KeyRange range, int64_t dim, float* keys, float* values) {
  for (int64_t half = range.begin / kLanes; half * kLanes < range.end; ++half) {
    for (int64_t d = 0; d < args.head_dim; ++d) {
      __builtin_prefetch(from.next_keys[half] + d * from.key_stride, 0, 2);
      Store(keys + d * kKeyTile + half * kLanes,
            d % 2 == 0 ? LoadKeys<false>(from, half, d) : LoadKeys<true>(from, half, d));
    }
  }
  for (int64_t key = range.begin; key < range.end; ++key) {
    const int64_t row = ValueRow<kType>(key % kLanes, from.value_stride);
    const uint8_t* v = from.values[key / kLanes] + row;
    for (int64_t d = 0; d < args.head_dim; d += kLanes) {
      const int64_t at = d * ValueStep(kType);
      __builtin_prefetch(from.next_values[key / kLanes] + row + at, 0, 2);
      Store(values + key * dim + d, LoadValues<kType>(v + at, key % 2 != 0, args.head_dim - d));
    }
  }
  TileOfFloats to = {};
  for (int64_t half = 0; half < 2; ++half) {
    to.key_scales[half] = from.key_scales[half];
    to.value_scales[half] = from.value_scales[half];
    to.keys[half] = reinterpret_cast<const uint8_t*>(keys + half * kLanes);
    to.values[half] = reinterpret_cast<const uint8_t*>(values + half * kLanes * dim);
  }
  to.key_stride = kKeyTile * sizeof(float);
  to.value_stride = dim * sizeof(float);
  return to;
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_KV_TILE_IMPL_H_
