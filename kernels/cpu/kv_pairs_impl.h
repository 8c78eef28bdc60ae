// SPDX-License-Identifier: Apache-2.0
// A tile of keys and values of a KV head as pairs of bfloat16s: of K two dims of a key, of V a dim
// of two keys. bf16 lies so in the blocks; int8 is expanded, which is exact.
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
  // The part of a block that is a group's share, whichever of its values these are.
  const uint8_t* Share(const KeyPlaces& places, int64_t group) const {
    return At(places, group) + places.slots[group] * args.head_dim * BytesOf(kType);
  }
};

// Fetches V, then K, of a tile of one head while another is worked on: blocks lie far from each
// other, so that no hardware sees them coming. A few lines at a time and only between products of
// tiles: a core waits for so few lines at once that more of them stop its loads.
class Fetcher {
 public:
  // From now on, of the head whose `keys` and `values` these are.
  template <class Parts>
  void Start(const Parts& keys, const Parts& values, const KeyPlaces& places, int64_t share_bytes) {
    for (int64_t group = 0; group < kKeyGroups; ++group) {
      shares_[group] = values.Share(places, group);
      shares_[kKeyGroups + group] = keys.Share(places, group);
    }
    share_ = 0;
    bytes_ = share_bytes;
    at_ = 0;
  }
  void Fetch(int64_t lines) {
    for (; lines > 0 && share_ < 2 * kKeyGroups; --lines) {
      __builtin_prefetch(shares_[share_] + at_, 0, 2);
      at_ += 64;
      if (at_ < bytes_) continue;
      at_ = 0;
      ++share_;
    }
  }

 private:
  const uint8_t* shares_[2 * kKeyGroups];
  int64_t share_ = 2 * kKeyGroups, bytes_ = 0, at_ = 0;
};

inline void StorePairs(uint32_t* to, I32x16 pairs) {
  Store(reinterpret_cast<float*>(to), BitCast(pairs));
}

// Sixteen pairs of a head's K, of the dim whose keys begin at `keys` and, where `both`, the next.
template <KvType kType>
inline I32x16 PairOfDims(const AttentionArgs& args, const uint8_t* keys, bool both) {
  if constexpr (kType == KvType::kBF16) {
    return both ? LoadBytes(keys) : AndI(LoadBytes(keys), Set1I(0xffff));
  } else {  // the lower half of each float is zero
    const I32x16 low = ShiftRight<16>(BitCast(ToFloat(LoadS8(keys))));
    return both ? OrI(low, BitCast(ToFloat(LoadS8(keys + args.block_tokens)))) : low;
  }
}
// From a pair of dims to the next.
template <KvType kType>
inline int64_t PairBytes(const AttentionArgs& args) {
  return kType == KvType::kBF16 ? 64 : 2 * args.block_tokens;
}

// keys [bands of groups][head_dim / 32][group of the band][16 pairs of dims][16 keys]. Groups that
// nobody owns stay as they are.
template <KvType kType>
inline void ExpandKeys(const AttentionArgs& args, const KeyPlaces& from, int64_t kv_head,
                       uint32_t* keys) {
  const HeadParts<kType> part(args, true, kv_head);
  const int64_t steps = (args.head_dim + 31) / 32, stride = PairBytes<kType>(args);
  for (int64_t group = from.owned.begin / kLanes; group * kLanes < from.owned.end; ++group) {
    const KvPlace place = KeyPlace(kType, args.head_dim, args.block_tokens, from.slots[group]);
    const uint8_t* head = part.At(from, group) + place.first * BytesOf(kType);
    uint32_t* to =
        keys + (group / kBandGroups * steps * kBandGroups + group % kBandGroups) * kPairTileWords;
    for (int64_t step = 0; step < steps; ++step, to += kBandGroups * kPairTileWords) {
      const int64_t dims = args.head_dim - step * 32;
      if (dims >= 32) {
#pragma GCC unroll 16
        for (int64_t i = 0; i < 16; ++i, head += stride) {
          StorePairs(to + i * kLanes, PairOfDims<kType>(args, head, true));
        }
        continue;
      }
      for (int64_t i = 0; 2 * i < dims; ++i, head += stride) {
        StorePairs(to + i * kLanes, PairOfDims<kType>(args, head, 2 * i + 1 < dims));
      }
    }
  }
}

// The first `count` of sixteen pairs of two keys' V, the others zero. `rows`: of int8 those of
// either key, of bf16 the one that they have together.
template <KvType kType>
inline I32x16 PairOfKeys(const uint8_t* rows, int64_t stride, int64_t count) {
  if (count < kLanes) {
    uint8_t padded[2][64] = {};
    const int64_t bytes = count * ValueStep(kType);
    memcpy(padded[0], rows, static_cast<size_t>(bytes));
    if (kType == KvType::kInt8) memcpy(padded[1], rows + stride, static_cast<size_t>(bytes));
    return PairOfKeys<kType>(padded[0], 64, kLanes);
  }
  if constexpr (kType == KvType::kBF16) {
    return LoadBytes(rows);
  } else {
    return OrI(ShiftRight<16>(BitCast(ToFloat(LoadS8(rows)))),
               BitCast(ToFloat(LoadS8(rows + stride))));
  }
}

// values [bands of 16 dims][kPairKeyTile / 32][sixteen dims of the band][16 pairs of keys][16
// dims]; values of keys that nobody owns are zero.
template <KvType kType>
inline void ExpandValues(const AttentionArgs& args, const KeyPlaces& from, int64_t kv_head,
                         uint32_t* values) {
  constexpr int64_t kBandWords = kPairKeyTile / 32 * kBandGroups * kPairTileWords;
  const HeadParts<kType> part(args, false, kv_head);
  const int64_t stride = args.head_dim * BytesOf(kType);
  const auto owned = [&](int64_t key) { return key >= from.owned.begin && key < from.owned.end; };
  const auto kept = [&](int64_t key) {
    const uint32_t mask = (owned(key) ? 0x0000ffffu : 0u) | (owned(key + 1) ? 0xffff0000u : 0u);
    return Set1I(static_cast<int32_t>(mask));
  };
  for (int64_t group = 0; group < kKeyGroups; ++group) {
    const int64_t first = group * kLanes;
    const uint8_t* rows = part.At(from, group) + from.slots[group] * stride;
    for (int64_t unit = 0; unit * kLanes < args.head_dim; ++unit) {
      const int64_t count = Smaller(kLanes, args.head_dim - unit * kLanes);
      uint32_t* to = values + unit / kBandGroups * kBandWords +
                     unit % kBandGroups * kPairTileWords +
                     (group / 2 * kBandGroups * 16 + group % 2 * 8) * kLanes;
      const uint8_t* row = rows + unit * kLanes * ValueStep(kType);
      if (owned(first) && owned(first + kLanes - 1) && count == kLanes) {
#pragma GCC unroll 8
        for (int64_t i = 0; i < 8; ++i, row += 2 * stride) {
          StorePairs(to + i * kLanes, PairOfKeys<kType>(row, stride, kLanes));
        }
        continue;
      }
      for (int64_t i = 0; i < 8; ++i, row += 2 * stride) {
        StorePairs(to + i * kLanes,
                   AndI(kept(first + 2 * i), PairOfKeys<kType>(row, stride, count)));
      }
    }
  }
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_KV_PAIRS_IMPL_H_
