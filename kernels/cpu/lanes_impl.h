// SPDX-License-Identifier: Apache-2.0
// What ops need beyond a simd_*.h, the same for all of them; one of those comes before.
#ifndef SETU_KERNELS_CPU_LANES_IMPL_H_
#define SETU_KERNELS_CPU_LANES_IMPL_H_

#include <stdint.h>
#include <string.h>

namespace setu::kernels {
namespace {

constexpr int64_t kLanes = 16;

constexpr int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t Larger(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t RoundUpToLanes(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// The first `n` of 16, the others zero.
inline F32x16 LoadPart(const float* p, int64_t n) {
  if (n >= kLanes) return Load(p);
  float padded[kLanes] = {};
  memcpy(padded, p, static_cast<size_t>(n) * sizeof(float));
  return Load(padded);
}
inline void StorePart(float* p, F32x16 a, int64_t n) {
  if (n >= kLanes) return Store(p, a);
  float all[kLanes];
  Store(all, a);
  memcpy(p, all, static_cast<size_t>(n) * sizeof(float));
}

// As a product of bfloat16s reads its operands: subnormals are zero, which adding does (MXCSR). The
// dequantisation of quantised weights leaves none; what comes from memory may be one.
inline F32x16 WithoutSubnormals(F32x16 x) { return Add(x, Set1(0.0f)); }

// A number that the compiler knows.
template <int64_t kValue>
struct Constant {
  constexpr operator int64_t() const { return kValue; }
};

// f.template operator()<0>(), <1>(), ... <n - 1>(): a loop whose counter is a constant.
template <int kFrom, int kTo, class F>
inline void Unroll(F& f) {
  if constexpr (kFrom < kTo) {
    f.template operator()<kFrom>();
    Unroll<kFrom + 1, kTo>(f);
  }
}

// Covers [row, rows) by blocks of kRows, then of half as many, down to one.
template <int kRows, class F>
inline void ForRowBlocks(int64_t row, int64_t rows, const F& block) {
  for (; row + kRows <= rows; row += kRows) block.template operator()<kRows>(row);
  if constexpr (kRows > 1) ForRowBlocks<kRows / 2>(row, rows, block);
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_LANES_IMPL_H_
