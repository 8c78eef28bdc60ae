// SPDX-License-Identifier: Apache-2.0
// Products of 16 outputs (one tile) with all rows of x. Every output is one chain over ascending k
// of its own row alone, so neither the number of rows nor their grouping reaches its bits.
#ifndef SETU_KERNELS_CPU_LINEAR_IMPL_H_
#define SETU_KERNELS_CPU_LINEAR_IMPL_H_

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/weights_impl.h"

namespace setu::kernels {
namespace {

// Fetches what comes kDistance after `bytes` bytes of weights into the first-level cache. So far
// ahead, the rows that find the weights in a cache cover the wait for the first of the next tile.
template <int64_t kDistance = 8192>
inline void PrefetchAfter(const uint8_t* weights, int64_t bytes) {
  for (int64_t line = 0; line < bytes; line += 64) {
    __builtin_prefetch(weights + kDistance + line, 0, 3);
  }
}

inline void FinishOutputs(const LinearArgs& args, int64_t tile, int64_t row, F32x16 sum) {
  const int64_t first = tile * kTileRows;
  const int64_t count = Smaller(kTileRows, args.weights.rows - first);
  float* out = args.out + row * args.out_stride + first;
  if (args.bias != nullptr) sum = Add(sum, LoadPart(args.bias + first, count));
  if (args.accumulate) sum = Add(LoadPart(out, count), sum);
  StorePart(out, sum, count);
}

// sums[r] += the chain over `count` k of `kRows` rows; weights [count][16].
template <int kRows>
inline void FmaChunk(const float* weights, int64_t count, const float* x, int64_t x_stride,
                     float* sums) {
  F32x16 sum[kRows];
  for (int r = 0; r < kRows; ++r) sum[r] = Load(sums + r * kTileRows);
  for (int64_t k = 0; k < count; ++k) {
    const F32x16 w = Load(weights + k * kTileRows);
    for (int r = 0; r < kRows; ++r) sum[r] = Fma(w, Set1(x[r * x_stride + k]), sum[r]);
  }
  for (int r = 0; r < kRows; ++r) Store(sums + r * kTileRows, sum[r]);
}

// Weights are expanded 32 k at a time, once per 64 rows of x.
template <WeightType kType>
inline void LinearF32Tile(const LinearArgs& args, int64_t tile) {
  constexpr int64_t kMostRows = 64;
  const uint8_t* weights = args.weights.tiles + tile * args.weights.tile_bytes;
  const int64_t chunk_bytes = args.weights.tile_bytes * kGroup / args.weights.cols;
  alignas(64) float expanded[kGroup * kTileRows];
  alignas(64) float sums[kMostRows * kTileRows];
  for (int64_t first = 0; first < args.rows; first += kMostRows) {
    const int64_t rows = Smaller(kMostRows, args.rows - first);
    memset(sums, 0, sizeof(sums));
    for (int64_t k = 0; k < args.weights.cols; k += kGroup) {
      const int64_t count = Smaller(kGroup, args.weights.cols - k);
      PrefetchAfter(weights + k / kGroup * chunk_bytes, chunk_bytes);
      Dequantise<kType>(weights, k / kGroup, count, expanded);
      const float* x = args.x + first * args.x_stride + k;
      const auto rows_at = [&]<int kRows>(int64_t r) {
        FmaChunk<kRows>(expanded, count, x + r * args.x_stride, args.x_stride,
                        sums + r * kTileRows);
      };
      ForRowBlocks<kRowBlock>(0, rows, rows_at);
    }
    for (int64_t r = 0; r < rows; ++r) {
      FinishOutputs(args, tile, first + r, Load(sums + r * kTileRows));
    }
  }
}

void LinearF32(const LinearArgs& args, int64_t begin, int64_t end) {
  WithType(args.weights.type, [&]<WeightType kType>() {
    for (int64_t tile = begin; tile < end; ++tile) LinearF32Tile<kType>(args, tile);
  });
}

constexpr int Log2(int value) { return value <= 1 ? 0 : 1 + Log2(value / 2); }

// The activations of a group of some rows, which follow each other; those of the next group come
// `step` later.
struct Int8Rows {
  const int8_t* q;
  const float* scales;
  const GroupSums* sums;
  int64_t step;

  Int8Rows From(int64_t group) const {
    const int64_t n = group * step;
    return {q + n * kGroup, scales + n, sums + n, step};
  }
};

inline Int8Rows RowsFrom(const LinearArgs& args, int64_t row) {
  const auto [first, step] = PlacesOf(row, args.rows, args.weights.cols / kGroup);
  const QuantisedRows& x = args.quantised;
  return {x.q + first * kGroup, x.scales + first, x.sums + first, step};
}

// The exact sums over a group of 32 (or, where kHalf is 1 or 2, over its first or last 16 k) of
// each of kTiles tiles: sum of (w - zero) * q, which starts from -zero * sum of q.
template <WeightType kType, int kHalf, int kTiles, int kRows>
inline void DotGroup(const uint8_t* const* group, const Int8Rows& x, I32x16 (*sums)[kTiles]) {
  constexpr bool kSigned = kType == WeightType::kQ8_0;
  constexpr int kZero = kSigned ? kSignedZero : LayoutOf(kType).zero;
  for (int r = 0; r < kRows; ++r) {
    const I32x16 start =
        kZero == 0 ? Set1I(0) : ShiftLeft<Log2(kZero)>(Set1I(x.sums[r].negative[kHalf]));
    for (int t = 0; t < kTiles; ++t) sums[r][t] = start;
  }
  const auto four_k = [&]<int kI>() {
    I32x16 w[kTiles];
    for (int t = 0; t < kTiles; ++t) {
      w[t] = Quants<kType, kI>(group[t]);
      if constexpr (kSigned) w[t] = PrepareSigned(w[t]);
    }
    for (int r = 0; r < kRows; ++r) {
      const int8_t* four = x.q + r * kGroup + 4 * kI;
      if constexpr (kTiles == 1) {
        sums[r][0] =
            kSigned ? DotSigned(sums[r][0], w[0], four) : DotUnsigned(sums[r][0], w[0], four);
      } else {
        const I32x16 repeated = InRegister(Repeat4(four));  // loaded once for all tiles
        for (int t = 0; t < kTiles; ++t) sums[r][t] = DotBytes(sums[r][t], w[t], repeated);
      }
    }
  };
  Unroll<(kHalf == 2 ? 4 : 0), (kHalf == 1 ? 4 : 8)>(four_k);
}

// The integers that a group's scales multiply.
template <WeightType kType, int kTiles, int kRows>
inline void SumGroup(const uint8_t* const* group, const Int8Rows& x, I32x16 (*sums)[kTiles]) {
  if constexpr (kType != WeightType::kQ6_K) {
    DotGroup<kType, 0, kTiles, kRows>(group, x, sums);
  } else {
    I32x16 last[kRows][kTiles];
    DotGroup<kType, 1, kTiles, kRows>(group, x, sums);
    DotGroup<kType, 2, kTiles, kRows>(group, x, last);
    for (int t = 0; t < kTiles; ++t) {
      const I32x16 first_scale = LoadS8(group[t]), last_scale = LoadS8(group[t] + kTileRows);
      for (int r = 0; r < kRows; ++r) {
        sums[r][t] = AddI(MulI(sums[r][t], first_scale), MulI(last[r][t], last_scale));
      }
    }
  }
}

// Rule 5 of the int8-g32 path for kTiles tiles and kRows rows of x. The first rows fetch weights.
template <WeightType kType, int kTiles, int kRows>
inline void LinearInt8Rows(const LinearArgs& args, int64_t tile, int64_t row) {
  constexpr GroupLayout kLayout = LayoutOf(kType);
  const int64_t groups = args.weights.cols / kGroup;
  Int8Rows x = RowsFrom(args, row);
  const uint8_t* block[kTiles];
  for (int t = 0; t < kTiles; ++t) {
    block[t] = args.weights.tiles + (tile + t) * args.weights.tile_bytes;
  }
  const int64_t fetched = row == 0 ? GroupBytes(kLayout) : 0;
  F32x16 sum[kRows][kTiles];
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTiles; ++t) sum[r][t] = Set1(0.0f);
  }
  for (int64_t g = 0; g < groups; g += kLayout.groups) {
    const uint8_t* group[kTiles];
    for (int t = 0; t < kTiles; ++t) group[t] = block[t] + kLayout.header;
    for (int64_t j = 0; j < kLayout.groups; ++j, x = x.From(1)) {
      I32x16 dots[kRows][kTiles];
      for (int t = 0; t < kTiles; ++t) PrefetchAfter(group[t], fetched);
      SumGroup<kType, kTiles, kRows>(group, x, dots);
      for (int t = 0; t < kTiles; ++t) {
        const GroupScales weights = ReadScales<kType>(block[t], group[t]);
        for (int r = 0; r < kRows; ++r) {
          const F32x16 x_scale = Set1(x.scales[r]);
          sum[r][t] = Fma(Mul(weights.scale, x_scale), ToFloat(dots[r][t]), sum[r][t]);
          if constexpr (kLayout.minimum) {
            sum[r][t] = Fma(Mul(weights.minimum, x_scale), Set1(x.sums[r].all), sum[r][t]);
          }
        }
        group[t] += GroupBytes(kLayout);
      }
    }
    for (int t = 0; t < kTiles; ++t) block[t] += BlockBytes(kLayout);
  }
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTiles; ++t) FinishOutputs(args, tile + t, row + r, sum[r][t]);
  }
}

// Fewer rows read the weights of two tiles, which leave the first level of cache, too often for
// what they share.
constexpr int64_t kLeastPairRows = 32;

// Two tiles at once where there are rows enough: each load of four activations serves both.
template <WeightType kType>
inline void LinearInt8Tiles(const LinearArgs& args, int64_t begin, int64_t end) {
  int64_t tile = begin;
  if constexpr (kPairRows > 0) {
    for (; tile + 2 <= end && args.rows >= kLeastPairRows; tile += 2) {
      const auto rows_at = [&]<int kRows>(int64_t row) {
        LinearInt8Rows<kType, 2, kRows>(args, tile, row);
      };
      ForRowBlocks<kPairRows>(0, args.rows, rows_at);
    }
  }
  for (; tile < end; ++tile) {
    const auto rows_at = [&]<int kRows>(int64_t row) {
      LinearInt8Rows<kType, 1, kRows>(args, tile, row);
    };
    ForRowBlocks<kRowBlock>(0, args.rows, rows_at);
  }
}

void LinearInt8(const LinearArgs& args, int64_t begin, int64_t end) {
  WithType(args.weights.type, [&]<WeightType kType>() {
    if constexpr (IsQuantised(kType)) LinearInt8Tiles<kType>(args, begin, end);
  });
}

// Activations of rule 5: d = amax / 127, q = round(x * (127 / amax)) within +-127.
void Quantise(const float* x, int64_t cols, int64_t row, int64_t rows, QuantisedRows out) {
  auto [place, step] = PlacesOf(row, rows, cols / kGroup);
  for (int64_t g = 0; g < cols / kGroup; ++g, x += kGroup, place += step) {
    const F32x16 a = Load(x), b = Load(x + kLanes);
    const float amax = ReduceMax(Max(Abs(a), Abs(b)));
    const float scale = amax / 127.0f;
    // A scale that is no normal number counts as 0: its inverse would not be finite.
    const bool normal = scale >= 0x1p-126f;
    const float inverse = normal ? 127.0f / amax : 0.0f;
    const auto round = [&](F32x16 v) {
      const F32x16 scaled = Mul(v, Set1(inverse));
      return RoundToInt(Min(Max(scaled, Set1(-127.0f)), Set1(127.0f)));
    };
    const I32x16 qa = round(a), qb = round(b);
    StoreS8(out.q + place * kGroup, qa);
    StoreS8(out.q + place * kGroup + kLanes, qb);
    const int32_t first = ReduceAddI(qa), last = ReduceAddI(qb);
    out.scales[place] = normal ? scale : 0.0f;
    out.sums[place] = {static_cast<float>(first + last), {-(first + last), -first, -last}};
  }
}

void Embed(const WeightsView& table, int64_t row, float* out) {
  WithType(table.type, [&]<WeightType kType>() {
    alignas(64) float expanded[kGroup * kTileRows];
    const uint8_t* tile = table.tiles + row / kTileRows * table.tile_bytes;
    for (int64_t k = 0; k < table.cols; k += kGroup) {
      const int64_t count = Smaller(kGroup, table.cols - k);
      Dequantise<kType>(tile, k / kGroup, count, expanded);
      for (int64_t i = 0; i < count; ++i) out[k + i] = expanded[i * kTileRows + row % kTileRows];
    }
  });
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_LINEAR_IMPL_H_
