// SPDX-License-Identifier: Apache-2.0
// Products of 16 outputs (one tile) with all rows of x. Every output is one chain over ascending k
// of its own row alone, so neither the number of rows nor their grouping reaches its bits.
#ifndef SETU_KERNELS_CPU_LINEAR_IMPL_H_
#define SETU_KERNELS_CPU_LINEAR_IMPL_H_

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/weights_impl.h"

namespace setu::kernels {
namespace {

// Fetches what comes 4 KiB after `bytes` bytes of weights into the second-level cache.
inline void PrefetchAfter(const uint8_t* weights, int64_t bytes) {
  for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(weights + 4096 + line, 0, 2);
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

void LinearF32(const LinearArgs& args, int64_t tile) {
  WithType(args.weights.type, [&]<WeightType kType>() { LinearF32Tile<kType>(args, tile); });
}

constexpr int Log2(int value) { return value <= 1 ? 0 : 1 + Log2(value / 2); }

// The exact sums over a group of 32 (or, where kHalf is 1 or 2, over its first or last 16 k):
// sum of (w - zero) * q, which starts from -zero * sum of q.
template <WeightType kType, int kRows, int kHalf>
inline void DotGroup(const uint8_t* group, const int8_t* q, int64_t cols, const GroupScale* scales,
                     int64_t groups, I32x16* sums) {
  constexpr bool kSigned = kType == WeightType::kQ8_0;
  constexpr int kZero = kSigned ? kSignedZero : LayoutOf(kType).zero;
  for (int r = 0; r < kRows; ++r) {
    sums[r] =
        kZero == 0 ? Set1I(0) : ShiftLeft<Log2(kZero)>(Set1I(scales[r * groups].negative[kHalf]));
  }
  const auto four_k = [&]<int kI>() {
    I32x16 w = Quants<kType, kI>(group);
    if constexpr (kSigned) w = PrepareSigned(w);
    for (int r = 0; r < kRows; ++r) {
      const int8_t* four = q + r * cols + 4 * kI;
      sums[r] = kSigned ? DotSigned(sums[r], w, four) : DotUnsigned(sums[r], w, four);
    }
  };
  Unroll<(kHalf == 2 ? 4 : 0), (kHalf == 1 ? 4 : 8)>(four_k);
}

// Rule 5 of the int8-g32 path for `kRows` rows of x.
template <WeightType kType, int kRows>
inline void LinearInt8Rows(const LinearArgs& args, int64_t tile, int64_t row) {
  constexpr GroupLayout kLayout = LayoutOf(kType);
  const int64_t cols = args.weights.cols, groups = cols / kGroup;
  const int8_t* q = args.q + row * cols;
  const GroupScale* scales = args.groups + row * groups;
  const uint8_t* block = args.weights.tiles + tile * args.weights.tile_bytes;
  F32x16 sum[kRows];
  for (int r = 0; r < kRows; ++r) sum[r] = Set1(0.0f);
  for (int64_t g = 0; g < groups; block += BlockBytes(kLayout)) {
    const uint8_t* group = block + kLayout.header;
    for (int64_t j = 0; j < kLayout.groups; ++j, ++g, group += GroupBytes(kLayout)) {
      PrefetchAfter(group, GroupBytes(kLayout));
      I32x16 dots[kRows];
      if constexpr (kType == WeightType::kQ6_K) {
        I32x16 last[kRows];
        DotGroup<kType, kRows, 1>(group, q + g * kGroup, cols, scales + g, groups, dots);
        DotGroup<kType, kRows, 2>(group, q + g * kGroup, cols, scales + g, groups, last);
        const I32x16 first_scale = LoadS8(group), last_scale = LoadS8(group + kTileRows);
        for (int r = 0; r < kRows; ++r) {
          dots[r] = AddI(MulI(dots[r], first_scale), MulI(last[r], last_scale));
        }
      } else {
        DotGroup<kType, kRows, 0>(group, q + g * kGroup, cols, scales + g, groups, dots);
      }
      const GroupScales weights = ReadScales<kType>(block, group);
      for (int r = 0; r < kRows; ++r) {
        const GroupScale& x = scales[r * groups + g];
        const F32x16 x_scale = Set1(x.scale);
        sum[r] = Fma(Mul(weights.scale, x_scale), ToFloat(dots[r]), sum[r]);
        if constexpr (kLayout.minimum) {
          sum[r] = Fma(Mul(weights.minimum, x_scale), Set1(x.sum), sum[r]);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) FinishOutputs(args, tile, row + r, sum[r]);
}

void LinearInt8(const LinearArgs& args, int64_t tile) {
  WithType(args.weights.type, [&]<WeightType kType>() {
    if constexpr (IsQuantised(kType)) {
      const auto rows_at = [&]<int kRows>(int64_t row) {
        LinearInt8Rows<kType, kRows>(args, tile, row);
      };
      ForRowBlocks<kRowBlock>(0, args.rows, rows_at);
    }
  });
}

// Activations of rule 5: d = amax / 127, q = round(x * (127 / amax)) within +-127.
void Quantise(const float* x, int64_t cols, int8_t* q, GroupScale* groups) {
  for (int64_t g = 0; g < cols / kGroup; ++g, x += kGroup, q += kGroup) {
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
    StoreS8(q, qa);
    StoreS8(q + kLanes, qb);
    const int32_t first = ReduceAddI(qa), last = ReduceAddI(qb);
    groups[g] = {
        normal ? scale : 0.0f, static_cast<float>(first + last), {-(first + last), -first, -last}};
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
