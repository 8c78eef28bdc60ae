// SPDX-License-Identifier: Apache-2.0
// Products of the int8-g32 path for many rows on AMX: tiles sum the integers of a group, which are
// exact whoever sums them, and lanes multiply them by the scales as linear_impl.h does. A product
// of tiles and what follows cost as much for one row as for sixteen, so few rows are left to lanes.
#ifndef SETU_KERNELS_CPU_LINEAR_INT8_TILES_IMPL_H_
#define SETU_KERNELS_CPU_LINEAR_INT8_TILES_IMPL_H_

#include "kernels/cpu/amx_tiles_impl.h"
#include "kernels/cpu/linear_impl.h"

namespace setu::kernels {
namespace {

// Groups of a weight tile that are made ready for all rows at once: what a block of K-quants has.
constexpr int64_t kReadyGroups = 8;
// Rows beyond full blocks of sixteen are worth tiles from here on.
constexpr int64_t kLeastTileRows = 9;
// Rows whose sums are kept at once; more rows make the weights ready again.
constexpr int64_t kMostTileRows = 64;

// Groups of one weight tile: signed quants, [8][16 rows][4 k] bytes a group, and what multiplies.
template <WeightType kType>
struct ReadyGroups {
  static constexpr GroupLayout kLayout = LayoutOf(kType);
  static constexpr int kParts = kType == WeightType::kQ6_K ? 2 : 1;  // with a sub-scale each
  static constexpr bool kAsPacked = kType == WeightType::kQ8_0;
  static constexpr int64_t kStep = kAsPacked ? BlockBytes(kLayout) : 512;

  ReadyGroups(const uint8_t* packed, int64_t count) {
    if constexpr (kAsPacked) quants = packed + kLayout.header;
    for (int64_t j = 0; j < count; ++j) {
      const uint8_t* block = packed + j / kLayout.groups * BlockBytes(kLayout);
      const uint8_t* group = block + kLayout.header + j % kLayout.groups * GroupBytes(kLayout);
      const GroupScales s = ReadScales<kType>(block, group);
      Store(scale[j], s.scale);
      if constexpr (kLayout.minimum) Store(minimum[j], s.minimum);
      if constexpr (kParts == 2) memcpy(sub_scales[j], group, sizeof(sub_scales[j]));
      if constexpr (!kAsPacked) {
        const auto four_k = [&]<int kI>() {
          const __m512i zero = _mm512_set1_epi8(kLayout.zero);
          _mm512_store_si512(expanded[j] + 64 * kI,
                             _mm512_sub_epi8(Quants<kType, kI>(group), zero));
        };
        Unroll<0, 8>(four_k);
      }
    }
  }

  const uint8_t* quants = expanded[0];  // kStep from one group to the next
  alignas(64) uint8_t expanded[kAsPacked ? 1 : kReadyGroups][512];
  alignas(64) float scale[kReadyGroups][kTileRows];
  alignas(64) float minimum[kLayout.minimum ? kReadyGroups : 1][kTileRows];
  uint8_t sub_scales[kParts == 2 ? kReadyGroups : 1][2 * kTileRows];
};

// The integers of one group, [parts][16 rows of x][16 outputs], by tiles that begin with kFirst.
template <int kParts, int64_t kFirst>
inline void MultiplyGroup(AmxTiles& tiles, const int8_t* q, const uint8_t* quants, int32_t* dots) {
  constexpr Constant<kFirst> kSum;
  constexpr Constant<4 + kFirst> kLeft;
  constexpr Constant<6 + kFirst> kRight;
  for (int part = 0; part < kParts; ++part) {
    tiles.Load(kRight, quants + part * 256, 64);
    tiles.Load(kLeft, q + part * 16, kGroup);
    tiles.Zero(kSum);
    tiles.DotBytes(kSum, kLeft, kRight);
    tiles.Store(kSum, dots + part * 256);
  }
}

// sums[r] += rule 5 over `count` groups, for sixteen rows of x, of which some may not exist.
// `fetch`: the packed groups, to fetch the weights that come after them; null where others did.
template <WeightType kType>
inline void AddGroups(AmxTiles& tiles, const ReadyGroups<kType>& weights, int64_t count,
                      const Int8Rows& x, const uint8_t* fetch, float* sums) {
  using Ready = ReadyGroups<kType>;
  constexpr int64_t kGroupDots = Ready::kParts * 256;
  constexpr int64_t kFetch = BlockBytes(LayoutOf(kType)) / LayoutOf(kType).groups;
  alignas(64) int32_t dots[4][kGroupDots];
  F32x16 sum[kQuantisedRows];
#pragma GCC unroll 16
  for (int r = 0; r < kQuantisedRows; ++r) sum[r] = Load(sums + r * kTileRows);
  const auto multiply = [&]<int64_t kFirst>(Constant<kFirst>, int64_t j) {
    if (j >= count) return;
    if (fetch != nullptr) PrefetchAfter<4096>(fetch + j * kFetch, kFetch);
    MultiplyGroup<Ready::kParts, kFirst>(tiles, x.q + j * x.step * kGroup,
                                         weights.quants + j * Ready::kStep, dots[j % 4]);
  };
  multiply(Constant<0>(), 0);
  for (int64_t j = 0; j < count; ++j) {
    // A product ahead, in the other tiles, so that it need not wait for this one.
    if (j % 2 == 0) multiply(Constant<1>(), j + 1);
    if (j % 2 == 1) multiply(Constant<0>(), j + 1);
    const F32x16 scale = Load(weights.scale[j]);
    const float* x_scales = x.scales + j * x.step;
#pragma GCC unroll 16
    for (int r = 0; r < kQuantisedRows; ++r) {
      I32x16 dot = LoadBytes(dots[j % 4] + r * kTileRows);
      if constexpr (Ready::kParts == 2) {
        const uint8_t* sub_scales = weights.sub_scales[j];
        const I32x16 last = LoadBytes(dots[j % 4] + 256 + r * kTileRows);
        dot = AddI(MulI(dot, LoadS8(sub_scales)), MulI(last, LoadS8(sub_scales + kTileRows)));
      }
      const F32x16 x_scale = Set1(x_scales[r]);
      sum[r] = Fma(Mul(scale, x_scale), ToFloat(dot), sum[r]);
      if constexpr (LayoutOf(kType).minimum) {
        const F32x16 x_sum = Set1(x.sums[j * x.step + r].all);
        sum[r] = Fma(Mul(Load(weights.minimum[j]), x_scale), x_sum, sum[r]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kQuantisedRows; ++r) Store(sums + r * kTileRows, sum[r]);
}

// Rows `first` .. `first` + `rows` - 1, from a full block on, of one weight tile.
template <WeightType kType>
inline void LinearInt8OnTiles(AmxTiles& tiles, const LinearArgs& args, int64_t tile, int64_t first,
                              int64_t rows) {
  const int64_t groups = args.weights.cols / kGroup;
  const uint8_t* weights = args.weights.tiles + tile * args.weights.tile_bytes;
  alignas(64) float sums[kMostTileRows * kTileRows] = {};
  for (int64_t g = 0; g < groups; g += kReadyGroups) {
    const int64_t count = Smaller(kReadyGroups, groups - g);
    const uint8_t* packed = weights + g * args.weights.tile_bytes / groups;
    const ReadyGroups<kType> ready(packed, count);
    for (int64_t row = 0; row < rows; row += kQuantisedRows) {
      AddGroups<kType>(tiles, ready, count, RowsFrom(args, first + row).From(g),
                       first + row == 0 ? packed : nullptr, sums + row * kTileRows);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    FinishOutputs(args, tile, first + r, Load(sums + r * kTileRows));
  }
}

void LinearInt8Amx(const LinearArgs& args, int64_t begin, int64_t end) {
  const int64_t beyond = args.rows % kQuantisedRows;
  const int64_t on_tiles = args.rows - (beyond < kLeastTileRows ? beyond : 0);
  if (on_tiles == 0) return LinearInt8(args, begin, end);
  WithType(args.weights.type, [&]<WeightType kType>() {
    if constexpr (IsQuantised(kType)) {
      AmxTiles tiles(16, 16, 8 / ReadyGroups<kType>::kParts);
      for (int64_t tile = begin; tile < end; ++tile) {
        for (int64_t row = 0; row < on_tiles; row += kMostTileRows) {
          LinearInt8OnTiles<kType>(tiles, args, tile, row, Smaller(kMostTileRows, on_tiles - row));
        }
        const auto rows_at = [&]<int kRows>(int64_t row) {
          LinearInt8Rows<kType, 1, kRows>(args, tile, row);
        };
        ForRowBlocks<kRowBlock>(on_tiles, args.rows, rows_at);
      }
    }
  });
}

// The kernels of `table`, with products of the int8-g32 path on tiles.
constexpr KernelTable WithInt8Tiles(KernelTable table) {
  table.linear_int8 = LinearInt8Amx;
  return table;
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_LINEAR_INT8_TILES_IMPL_H_
