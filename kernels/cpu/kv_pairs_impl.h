// SPDX-License-Identifier: Apache-2.0
// A tile of keys and values of a KV head as pairs of bfloat16s: of K two dims of a key, of V a dim
// of two keys. What lies in the blocks is interleaved, and int8 expanded, which is exact.
#ifndef SETU_KERNELS_CPU_KV_PAIRS_IMPL_H_
#define SETU_KERNELS_CPU_KV_PAIRS_IMPL_H_

#include "kernels/cpu/attention_layout.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/kv_tile_impl.h"
#include "kernels/cpu/lanes_impl.h"

namespace setu::kernels {
namespace {

constexpr int64_t kPairTileWords = 256;  // of 16 rows of 16 pairs
constexpr int64_t kKeyGroups = kPairKeyTile / kLanes;
constexpr int64_t kBandGroups = 2;  // tiles that are multiplied at once: see linear_tiles_impl.h

// Where a tile's keys lie, sixteen to a group. Groups without an owned key have the place of
// another: what is read there never counts.
struct KeyPlaces {
  int64_t origin;  // position of the first
  KeyRange owned;  // of the tile: the keys that any query of the piece sees
  const uint8_t* blocks[kKeyGroups];
  int64_t slots[kKeyGroups];
};

inline KeyPlaces PlacesOf(const AttentionArgs& args, int64_t origin, KeyRange owned) {
  KeyPlaces places = {.origin = origin, .owned = owned};
  for (int64_t group = 0; group < kKeyGroups; ++group) {
    const int64_t least = Larger(group, owned.begin / kLanes);
    const int64_t position = origin + Smaller(least, (owned.end - 1) / kLanes) * kLanes;
    places.slots[group] = position % args.block_tokens;
    places.blocks[group] = args.kv + args.blocks[position / args.block_tokens] * args.block_stride;
  }
  return places;
}

// Of K, else of V, of one head: the address of a group's block, and of its scales.
template <KvType kType>
struct HeadParts {
  const AttentionArgs& args;
  int64_t offset;
  HeadParts(const AttentionArgs& a, bool keys, int64_t kv_head)
      : args(a), offset((keys ? kv_head : a.kv_heads + kv_head) * a.head_bytes) {}

  const uint8_t* At(const KeyPlaces& places, int64_t group) const {
    return places.blocks[group] + offset;
  }
  const float* Scales(const KeyPlaces& places, int64_t group) const {
    const uint8_t* scales = At(places, group) + args.head_dim * args.block_tokens;
    return reinterpret_cast<const float*>(scales) + places.slots[group];
  }
  // The part of a block that is a group's share, whichever of its values these are: fetched while
  // the same share of the tile before is expanded. Blocks lie far from each other, so that no
  // hardware sees them coming.
  const uint8_t* Share(const KeyPlaces& places, int64_t group) const {
    return At(places, group) + places.slots[group] * args.head_dim * BytesOf(kType);
  }
};

// Fetches what the `i`th 32 values of a share are.
template <KvType kType>
inline void Fetch(const uint8_t* share, int64_t i) {
  if (BytesOf(kType) == 2 || i % 2 == 0) __builtin_prefetch(share + i * 32 * BytesOf(kType), 0, 2);
}

template <KvType kType>
inline I32x16 PairRows(const uint8_t* even, const uint8_t* odd) {
  if constexpr (kType == KvType::kBF16) {
    return PairBfloats(reinterpret_cast<const uint16_t*>(even),
                       reinterpret_cast<const uint16_t*>(odd));
  } else {  // the lower half of each float is zero
    return OrI(ShiftRight<16>(BitCast(ToFloat(LoadS8(even)))), BitCast(ToFloat(LoadS8(odd))));
  }
}

inline void StorePairs(uint32_t* to, I32x16 pairs) {
  Store(reinterpret_cast<float*>(to), BitCast(pairs));
}

// keys [bands of groups][head_dim / 32][group of the band][16 pairs of dims][16 keys]. Groups that
// nobody owns stay as they are. `zeros`: head_dim values.
template <KvType kType>
inline void ExpandKeys(const AttentionArgs& args, const KeyPlaces& from, int64_t kv_head,
                       const KeyPlaces& next, const uint8_t* zeros, uint32_t* keys) {
  const HeadParts<kType> part(args, true, kv_head);
  const int64_t stride = args.block_tokens * BytesOf(kType), pairs = (args.head_dim + 1) / 2;
  const int64_t steps = (pairs + 15) / 16, whole = args.head_dim / 32;
  for (int64_t group = from.owned.begin / kLanes; group * kLanes < from.owned.end; ++group) {
    const uint8_t* even = part.At(from, group) + from.slots[group] * BytesOf(kType);
    const uint8_t* share = part.Share(next, group);
    uint32_t* to =
        keys + (group / kBandGroups * steps * kBandGroups + group % kBandGroups) * kPairTileWords;
    const auto expand = [&](int64_t pair, const uint8_t* odd) {
      Fetch<kType>(share, pair);
      StorePairs(to + pair * kLanes, PairRows<kType>(even, odd));
      even += 2 * stride;
    };
    int64_t step = 0;
    for (; step < whole; ++step, to += kBandGroups * kPairTileWords) {
#pragma GCC unroll 16
      for (int64_t pair = 0; pair < 16; ++pair) expand(pair, even + stride);
      share += 16 * 32 * BytesOf(kType);
    }
    for (int64_t pair = 0; step * 16 + pair < pairs; ++pair) {
      expand(pair, (step * 16 + pair) * 2 + 1 < args.head_dim ? even + stride : zeros);
    }
  }
}

// The first `count` of sixteen pairs, the others zero.
template <KvType kType>
inline I32x16 PairRowsPart(const uint8_t* even, const uint8_t* odd, int64_t count) {
  if (count >= kLanes) return PairRows<kType>(even, odd);
  uint8_t padded[2][kLanes * BytesOf(kType)] = {};
  memcpy(padded[0], even, static_cast<size_t>(count * BytesOf(kType)));
  memcpy(padded[1], odd, static_cast<size_t>(count * BytesOf(kType)));
  return PairRows<kType>(padded[0], padded[1]);
}

// values [bands of 16 dims][kPairKeyTile / 32][sixteen dims of the band][16 pairs of keys][16
// dims]; values of keys that nobody owns are zero.
template <KvType kType>
inline void ExpandValues(const AttentionArgs& args, const KeyPlaces& from, int64_t kv_head,
                         const KeyPlaces& next, const uint8_t* zeros, uint32_t* values) {
  constexpr int64_t kBandWords = kPairKeyTile / 32 * kBandGroups * kPairTileWords;
  const HeadParts<kType> part(args, false, kv_head);
  const int64_t stride = args.head_dim * BytesOf(kType);
  for (int64_t group = 0; group < kKeyGroups; ++group) {
    const uint8_t* rows = part.At(from, group) + from.slots[group] * stride;
    const uint8_t* share = part.Share(next, group);
    const auto row = [&](int64_t i) {
      const int64_t key = group * kLanes + i;
      return key >= from.owned.begin && key < from.owned.end ? rows + i * stride : zeros;
    };
    uint32_t* to = values + (group / 2 * kBandGroups * 16 + group % 2 * 8) * kLanes;
    for (int64_t i = 0; i < kLanes; i += 2, to += kLanes) {
      const uint8_t *even = row(i), *odd = row(i + 1);
      const auto expand = [&](int64_t unit, int64_t count) {
        const int64_t at = unit * kLanes * BytesOf(kType);
        Fetch<kType>(share, unit);
        StorePairs(to + unit / kBandGroups * kBandWords + unit % kBandGroups * kPairTileWords,
                   PairRowsPart<kType>(even + at, odd + at, count));
      };
      int64_t unit = 0;
      for (; (unit + kBandGroups) * kLanes <= args.head_dim; unit += kBandGroups) {
#pragma GCC unroll 2
        for (int64_t of_band = 0; of_band < kBandGroups; ++of_band) {
          expand(unit + of_band, kLanes);
        }
      }
      for (; unit * kLanes < args.head_dim; ++unit) expand(unit, args.head_dim - unit * kLanes);
      share += 2 * stride;
    }
  }
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_KV_PAIRS_IMPL_H_
