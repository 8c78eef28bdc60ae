// SPDX-License-Identifier: Apache-2.0
// Products of the bf16-tile path by fma: the sums of TDPBF16PS, whose model is exact
// (https://www.intel.com/content/www/us/en/docs/intrinsics-guide, _tile_dpbf16ps). Operands are
// rounded to the nearest bfloat16, ties to even, but those of quantised weights away from zero,
// which is cheaper where they are expanded for tiles; then for each 32 k, ascending, a chain of fma
// from 0 over the even k and one over the odd k are added to each other and then to the output.
// What is missing of the last 32 k counts as zero.
#ifndef SETU_KERNELS_CPU_LINEAR_BF16_IMPL_H_
#define SETU_KERNELS_CPU_LINEAR_BF16_IMPL_H_

#include "kernels/cpu/linear_impl.h"

namespace setu::kernels {
namespace {

// x of one row, rounded, as floats: [cols in whole groups][rows][32], so that the rows of a block
// read next to each other.
void RoundRows(const float* x, int64_t /*x_stride*/, int64_t cols, int64_t row, int64_t /*count*/,
               int64_t rows, uint8_t* rounded) {
  float* out = reinterpret_cast<float*>(rounded) + row * kGroup;
  for (int64_t first = 0; first < cols; first += kGroup, out += rows * kGroup) {
    for (int64_t i = 0; i < kGroup; i += kLanes) {
      const int64_t k = first + i;
      const F32x16 v = k < cols ? LoadPart(x + k, cols - k) : Set1(0.0f);
      Store(out + i, RoundToBfloat(WithoutSubnormals(v)));
    }
  }
}

// To the nearest bfloat16, ties away from zero.
inline F32x16 RoundHalfAway(F32x16 a) {
  return BitCast(AndI(AddI(Bits(a), Set1I(0x8000)), Set1I(~0xffff)));
}

// Rounded weights of 32 k, as floats: [32][16 rows].
template <WeightType kType>
inline void ExpandRounded(const uint8_t* tile, int64_t chunk, int64_t count, float* out) {
  DequantiseEach<kType>(tile, chunk, count, [&](int64_t k, F32x16 w) {
    Store(out + k * kTileRows,
          IsQuantised(kType) ? RoundHalfAway(w) : RoundToBfloat(WithoutSubnormals(w)));
  });
  for (int64_t k = count; k < kGroup; ++k) Store(out + k * kTileRows, Set1(0.0f));
}

// sums[r] += the products of 32 k of `kRows` rows; weights [32][16], x [rows][32].
template <int kRows>
inline void AddGroup(const float* weights, const float* x, float* sums) {
  F32x16 even[kRows], odd[kRows];
  for (int r = 0; r < kRows; ++r) even[r] = odd[r] = Set1(0.0f);
  for (int64_t k = 0; k < kGroup; k += 2) {
    const F32x16 even_w = Load(weights + k * kTileRows),
                 odd_w = Load(weights + (k + 1) * kTileRows);
    for (int r = 0; r < kRows; ++r) {
      even[r] = Fma(even_w, Set1(x[r * kGroup + k]), even[r]);
      odd[r] = Fma(odd_w, Set1(x[r * kGroup + k + 1]), odd[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    Store(sums + r * kTileRows, Add(Load(sums + r * kTileRows), Add(even[r], odd[r])));
  }
}

// Weights are expanded 32 k at a time, once per 64 rows of x.
template <WeightType kType>
inline void LinearBf16Tile(const LinearArgs& args, int64_t tile) {
  constexpr int64_t kMostRows = 64;
  const uint8_t* weights = args.weights.tiles + tile * args.weights.tile_bytes;
  const int64_t cols = args.weights.cols;
  const int64_t chunk_bytes = args.weights.tile_bytes * kGroup / cols;
  const float* rounded = reinterpret_cast<const float*>(args.rounded);
  alignas(64) float expanded[kGroup * kTileRows];
  alignas(64) float sums[kMostRows * kTileRows];
  for (int64_t first = 0; first < args.rows; first += kMostRows) {
    const int64_t rows = Smaller(kMostRows, args.rows - first);
    memset(sums, 0, sizeof(sums));
    for (int64_t k = 0; k < cols; k += kGroup) {
      PrefetchAfter(weights + k / kGroup * chunk_bytes, chunk_bytes);
      ExpandRounded<kType>(weights, k / kGroup, Smaller(kGroup, cols - k), expanded);
      const float* x = rounded + k * args.rows + first * kGroup;
      const auto rows_at = [&]<int kRows>(int64_t r) {
        AddGroup<kRows>(expanded, x + r * kGroup, sums + r * kTileRows);
      };
      ForRowBlocks<kBfloatRowBlock>(0, rows, rows_at);
    }
    for (int64_t r = 0; r < rows; ++r) {
      FinishOutputs(args, tile, first + r, Load(sums + r * kTileRows));
    }
  }
}

void LinearBf16(const LinearArgs& args, int64_t begin, int64_t end, float* /*scratch*/) {
  WithType(args.weights.type, [&]<WeightType kType>() {
    for (int64_t tile = begin; tile < end; ++tile) LinearBf16Tile<kType>(args, tile);
  });
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_LINEAR_BF16_IMPL_H_
