// SPDX-License-Identifier: Apache-2.0
// Reading weights that are packed in PackOrder::kTiles: 32 k of sixteen rows as rows of a tile
// unit, and a row of a table.
//
// A row of at most 5 bits has few possible values: they are made and rounded once, as a table of
// 32 words, and one permutation of words looks up 32 weights. Words: what Tiles
// (linear_tiles_impl.h) offers beyond the lanes.
#ifndef SETU_KERNELS_CPU_TILE_WEIGHTS_IMPL_H_
#define SETU_KERNELS_CPU_TILE_WEIGHTS_IMPL_H_

#include "kernels/cpu/weights_impl.h"

namespace setu::kernels {
namespace {

// Of 32 k of a tile, about.
template <WeightType kType>
constexpr int64_t StepBytes() {
  if constexpr (!IsQuantised(kType)) return kGroup * kTileRows * FloatBytes(kType);
  if constexpr (IsQuantised(kType)) return BlockBytes(LayoutOf(kType)) / LayoutOf(kType).groups;
}
template <WeightType kType>
constexpr int64_t kStepBytes = StepBytes<kType>();

template <WeightType kType>
struct TileGroup {
  const uint8_t* block;  // the same as `group` where weights are floats
  const uint8_t* group;
};

template <WeightType kType>
inline TileGroup<kType> GroupAt(const uint8_t* tile, int64_t step) {
  if constexpr (!IsQuantised(kType)) {
    return {tile + step * kStepBytes<kType>, tile + step * kStepBytes<kType>};
  } else {
    constexpr GroupLayout kLayout = LayoutOf(kType);
    const uint8_t* block = tile + step / kLayout.groups * BlockBytes(kLayout);
    return {block, block + kLayout.header + step % kLayout.groups * GroupBytes(kLayout)};
  }
}

// Sixteen of a row's floats as they are in the file.
template <WeightType kType>
inline F32x16 LoadFloats(const uint8_t* group, int64_t first) {
  if constexpr (kType == WeightType::kF32) {
    return Load(reinterpret_cast<const float*>(group) + first);
  } else {
    const uint16_t* from = reinterpret_cast<const uint16_t*>(group) + first;
    return kType == WeightType::kF16 ? LoadHalf(from) : LoadBfloat(from);
  }
}

// What multiplies a row's quants, of the first and the last 16 k, and what is added. Written well
// before they are read back one by one: a load of a part of a vector waits for its store.
struct TileScales {
  alignas(64) float first[kTileRows], last[kTileRows], minimum[kTileRows];
};

template <WeightType kType>
inline void ReadTileScales(const TileGroup<kType>& at, TileScales& scales) {
  if constexpr (!IsQuantised(kType)) return;
  const GroupScales s = ReadScales<kType>(at.block, at.group);
  if constexpr (kType == WeightType::kQ6_K) {
    Store(scales.first, Mul(s.scale, ToFloat(LoadS8(at.group))));
    Store(scales.last, Mul(s.scale, ToFloat(LoadS8(at.group + kTileRows))));
  } else {
    Store(scales.first, s.scale);
  }
  if constexpr (LayoutOf(kType).minimum) Store(scales.minimum, s.minimum);
}

// The values of sixteen quants from kFrom on, of a row.
template <WeightType kType, int kFrom>
inline F32x16 Levels(const TileScales& scales, int row) {
  constexpr GroupLayout kLayout = LayoutOf(kType);
  alignas(64) static constexpr int8_t kQuants[16] = {
      kFrom - kLayout.zero,      kFrom + 1 - kLayout.zero,  kFrom + 2 - kLayout.zero,
      kFrom + 3 - kLayout.zero,  kFrom + 4 - kLayout.zero,  kFrom + 5 - kLayout.zero,
      kFrom + 6 - kLayout.zero,  kFrom + 7 - kLayout.zero,  kFrom + 8 - kLayout.zero,
      kFrom + 9 - kLayout.zero,  kFrom + 10 - kLayout.zero, kFrom + 11 - kLayout.zero,
      kFrom + 12 - kLayout.zero, kFrom + 13 - kLayout.zero, kFrom + 14 - kLayout.zero,
      kFrom + 15 - kLayout.zero};
  const F32x16 q = ToFloat(LoadS8(reinterpret_cast<const uint8_t*>(kQuants)));
  const F32x16 scale = Set1(scales.first[row]);
  return kLayout.minimum ? Fma(scale, q, Set1(scales.minimum[row])) : Mul(scale, q);
}

// Row kRow of a group of quants, rounded: 32 words. `four` has the low bits of its four rows.
template <WeightType kType, int kRow, class Tiles>
[[gnu::always_inline]] inline I32x16 ExpandRow(const uint8_t* group, I32x16 four,
                                               const TileScales& scales) {
  constexpr GroupLayout kLayout = LayoutOf(kType);
  const uint8_t* plane = group + kLayout.sub_scales;
  const uint8_t* quants = plane + kLayout.plane;
  if constexpr (kLayout.quants == 512) {
    const uint8_t* q = quants + kRow * kGroup;
    const F32x16 scale = Set1(scales.first[kRow]);
    return Tiles::JoinAway(Mul(scale, ToFloat(LoadS8(q))), Mul(scale, ToFloat(LoadS8(q + 16))));
  } else if constexpr (kLayout.plane == 0) {  // each value twice: bit 0 may be anything
    const F32x16 values = Levels<kType, 0>(scales, kRow);
    return Tiles::Lookup(Tiles::JoinAway(values, values),
                         Tiles::template ShiftWords<kRow % 4 * 4 - 1>(four));
  } else if constexpr (kLayout.plane == 64) {
    const I32x16 table =
        Tiles::JoinAway(Levels<kType, 0>(scales, kRow), Levels<kType, 16>(scales, kRow));
    const I32x16 top = Tiles::template ShiftWords<kRow>(LoadBytes(plane));
    return Tiles::Lookup(
        table, OrI(AndI(Tiles::template ShiftWords<kRow % 4 * 4 - 1>(four), Set1I(0x001e001e)),
                   AndI(top, Set1I(0x00010001))));
  } else {  // of two scales: k below 16 are the first eight lanes
    const I32x16 low = AndI(Tiles::template ShiftWords<kRow % 4 * 4>(four), Set1I(0x000f000f));
    const I32x16 top =
        AndI(Tiles::template ShiftWords<kRow % 8 * 2 - 4>(LoadBytes(plane + kRow / 8 * 64)),
             Set1I(0x00300030));
    const I32x16 q = OrI(low, top);
    const F32x16 scale = Tiles::Halves(scales.first[kRow], scales.last[kRow]);
    const auto value = [&](I32x16 quant) {
      return Mul(scale, ToFloat(SubI(quant, Set1I(kLayout.zero))));
    };
    return Tiles::JoinAway(value(AndI(q, Set1I(0xffff))), value(ShiftRight<16>(q)));
  }
}

// The weights of 32 k of sixteen rows, rounded: [16 rows][32 k]. After each row: row_done<row>().
template <WeightType kType, class Tiles, class RowDone>
[[gnu::always_inline]] inline void ExpandGroup(const TileGroup<kType>& at, const TileScales& scales,
                                               uint16_t* out, const RowDone& row_done) {
  const auto put = [&]<int64_t kRow>(Constant<kRow>, I32x16 words) {
    Store(reinterpret_cast<float*>(out + kRow * kGroup), BitCast(words));
    row_done.template operator()<kRow>();
  };
  if constexpr (!IsQuantised(kType)) {
    const auto round = [&]<int kRow>() {
      const auto half = [&](int64_t first) {
        return WithoutSubnormals(LoadFloats<kType>(at.block, kRow * kGroup + first));
      };
      put(Constant<kRow>{}, Tiles::Join(half(0), half(16)));
    };
    Unroll<0, kTileRows>(round);
  } else {
    const uint8_t* quants = at.group + LayoutOf(kType).sub_scales + LayoutOf(kType).plane;
    I32x16 four = Set1I(0);
    const auto expand = [&]<int kRow>() {
      if (kRow % 4 == 0 && LayoutOf(kType).quants == 256) {
        four = InRegister(LoadBytes(quants + kRow / 4 * 64));
      }
      put(Constant<kRow>{}, ExpandRow<kType, kRow, Tiles>(at.group, four, scales));
    };
    Unroll<0, kTileRows>(expand);
  }
}

// Quant k of a row, minus what stands for 0.
template <WeightType kType>
inline float TileQuant(const uint8_t* group, int64_t row, int64_t k) {
  constexpr GroupLayout kLayout = LayoutOf(kType);
  const uint8_t* plane = group + kLayout.sub_scales;
  const uint8_t* quants = plane + kLayout.plane;
  if constexpr (kLayout.quants == 512) {
    return static_cast<int8_t>(quants[row * kGroup + k % 2 * 16 + k / 2]);
  } else {
    const auto bits = [&](const uint8_t* vectors, int64_t rows) {
      const uint8_t* word = vectors + row / rows * 64 + 2 * k;
      const int64_t at = row % rows * (16 / rows);
      return word[at / 8] >> at % 8 & ((1 << 16 / rows) - 1);
    };
    int q = bits(quants, 4);
    if constexpr (kLayout.plane == 64) q |= bits(plane, 16) << 4;
    if constexpr (kLayout.plane == 128) q |= bits(plane, 8) << 4;
    return static_cast<float>(q - kLayout.zero);
  }
}

// One row of a table of weights, not rounded.
void EmbedOfTiles(const WeightsView& table, int64_t row, float* out) {
  const int64_t own = row % kTileRows;
  WithType(table.type, [&]<WeightType kType>() {
    const uint8_t* tile = table.tiles + row / kTileRows * table.tile_bytes;
    for (int64_t k = 0; k < table.cols; k += kGroup, out += kGroup) {
      const int64_t count = Smaller(kGroup, table.cols - k);
      const TileGroup<kType> at = GroupAt<kType>(tile, k / kGroup);
      if constexpr (!IsQuantised(kType)) {
        for (int64_t i = 0; i < count; i += kLanes) {
          StorePart(out + i, LoadFloats<kType>(at.block, own * kGroup + i), count - i);
        }
      } else {
        TileScales s;
        ReadTileScales<kType>(at, s);
        for (int64_t i = 0; i < count; ++i) {
          const float scale = kType == WeightType::kQ6_K && i >= 16 ? s.last[own] : s.first[own];
          const float q = TileQuant<kType>(at.group, own, i);
          out[i] = LayoutOf(kType).minimum ? Fma(scale, q, s.minimum[own]) : scale * q;
        }
      }
    }
  });
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_TILE_WEIGHTS_IMPL_H_
