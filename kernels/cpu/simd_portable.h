// SPDX-License-Identifier: Apache-2.0
// Sixteen lanes in plain C++: the definition of what simd_avx2.h and simd_avx512.h do faster. Ops
// are written once over these names, so every ISA gives the same bits.
//
//   F32x16, I32x16   sixteen floats, sixteen int32 (or 64 bytes: four per lane, little endian)
//   F64x16           sixteen doubles
//   kRowBlock        rows of x that one pass over a weight tile serves; kBfloatRowBlock: with two
//                    sums each
//   kPairRows        rows that one pass over two tiles serves; 0: one tile at a time
//   kSignedZero      what DotSigned adds to each weight; the caller takes it off again
//
// fmaf is the one call to the C library: IEEE 754 leaves it a single result.
#ifndef SETU_KERNELS_CPU_SIMD_PORTABLE_H_
#define SETU_KERNELS_CPU_SIMD_PORTABLE_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/half.h"

namespace setu::kernels {
namespace {

// GNU vectors: operators work lane by lane, as on plain arrays, and compile fast.
using F32x16 = float __attribute__((vector_size(64)));
using I32x16 = int32_t __attribute__((vector_size(64)));
using F64x16 = double __attribute__((vector_size(128)));
using U32x16 = uint32_t __attribute__((vector_size(64)));

constexpr int kRowBlock = 2, kPairRows = 0, kBfloatRowBlock = 1;
// Of attention, as registers allow: queries and vectors of V at once.
constexpr int kQueryBlock = 1, kValueVectors = 1;
constexpr int kProbeSums = 2, kProbeWeights = 2;  // of probe_impl.h, the same way
constexpr int kSignedZero = 0;

inline F32x16 Load(const float* p) {
  F32x16 r;
  memcpy(&r, p, sizeof(r));
  return r;
}
inline void Store(float* p, F32x16 a) { memcpy(p, &a, sizeof(a)); }
inline F32x16 InRegister(F32x16 a) { return a; }
inline I32x16 InRegister(I32x16 a) { return a; }
inline F32x16 Set1(float a) { return F32x16{} + a; }
inline F32x16 Add(F32x16 a, F32x16 b) { return a + b; }
inline F32x16 Sub(F32x16 a, F32x16 b) { return a - b; }
inline F32x16 Mul(F32x16 a, F32x16 b) { return a * b; }
inline F32x16 Div(F32x16 a, F32x16 b) { return a / b; }
// a * b + c, rounded once.
[[gnu::noinline]] F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r[i] = fmaf(a[i], b[i], c[i]);
  return r;
}
inline float Fma(float a, float b, float c) { return fmaf(a, b, c); }
// The second operand where they are equal or one is NaN, as MAXPS and MINPS.
inline F32x16 Max(F32x16 a, F32x16 b) { return a > b ? a : b; }
inline F32x16 Min(F32x16 a, F32x16 b) { return a < b ? a : b; }
// Bit i: a < b in lane i.
inline uint32_t LessMask(F32x16 a, F32x16 b) {
  const I32x16 less = a < b;
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) mask |= (less[i] & 1u) << i;
  return mask;
}
// Sums in double: each lane of `a` added to its own.
inline F64x16 ZeroF64() { return F64x16{}; }
inline F64x16 AddF64(F64x16 sums, F32x16 a) { return sums + __builtin_convertvector(a, F64x16); }
inline void StoreF64(double* p, F64x16 sums) { memcpy(p, &sums, sizeof(sums)); }
inline F32x16 Abs(F32x16 a) { return (F32x16)((U32x16)a & 0x7fffffffu); }
// a < b ? yes : no, per lane.
inline F32x16 SelectLess(F32x16 a, F32x16 b, F32x16 yes, F32x16 no) { return a < b ? yes : no; }

[[gnu::noinline]] F32x16 LoadHalf(const uint16_t* p) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r[i] = HalfToFloat(p[i]);
  return r;
}
[[gnu::noinline]] void StoreHalf(uint16_t* p, F32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = FloatToHalf(a[i]);
}
inline F32x16 LoadBfloat(const uint16_t* p) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r[i] = BfloatToFloat(p[i]);
  return r;
}
// The nearest bfloat16s, ties to even, as floats.
[[gnu::noinline]] F32x16 RoundToBfloat(F32x16 a) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r[i] = BfloatToFloat(FloatToBfloat(a[i]));
  return r;
}
inline void StoreBfloat(uint16_t* p, F32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = FloatToBfloat(a[i]);
}

// The fixed trees of all sums and maxima: lanes 8 apart, then 4, 2, 1.
[[gnu::noinline]] float ReduceAdd(F32x16 a) {
  for (int distance = 8; distance > 0; distance /= 2) {
    for (int i = 0; i < distance; ++i) a[i] = a[i] + a[i + distance];
  }
  return a[0];
}
[[gnu::noinline]] float ReduceMax(F32x16 a) {
  for (int distance = 8; distance > 0; distance /= 2) {
    for (int i = 0; i < distance; ++i) a[i] = a[i] > a[i + distance] ? a[i] : a[i + distance];
  }
  return a[0];
}

inline I32x16 LoadBytes(const void* p) {
  I32x16 r;
  memcpy(&r, p, sizeof(r));
  return r;
}
inline I32x16 LoadU8(const uint8_t* p) {
  I32x16 r;
  for (int i = 0; i < 16; ++i) r[i] = p[i];
  return r;
}
inline I32x16 LoadS8(const uint8_t* p) {
  I32x16 r;
  for (int i = 0; i < 16; ++i) r[i] = static_cast<int8_t>(p[i]);
  return r;
}
inline void StoreS8(int8_t* p, I32x16 a) {  // values within a byte
  for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(a[i]);
}
inline I32x16 Set1I(int32_t a) { return I32x16{} + a; }
inline I32x16 AddI(I32x16 a, I32x16 b) { return (I32x16)((U32x16)a + (U32x16)b); }
inline int32_t ReduceAddI(I32x16 a) {
  uint32_t sum = 0;  // may wrap around
  for (int i = 0; i < 16; ++i) sum += static_cast<uint32_t>(a[i]);
  return static_cast<int32_t>(sum);
}
inline I32x16 SubI(I32x16 a, I32x16 b) { return (I32x16)((U32x16)a - (U32x16)b); }
inline I32x16 MulI(I32x16 a, I32x16 b) { return (I32x16)((U32x16)a * (U32x16)b); }
inline I32x16 AndI(I32x16 a, I32x16 b) { return a & b; }
inline I32x16 OrI(I32x16 a, I32x16 b) { return a | b; }
template <int kBits>
inline I32x16 ShiftLeft(I32x16 a) {
  return (I32x16)((U32x16)a << kBits);
}
template <int kBits>
inline I32x16 ShiftRight(I32x16 a) {  // zeros come in
  return (I32x16)((U32x16)a >> kBits);
}
template <int kBits>
inline I32x16 ShiftRightSigned(I32x16 a) {
  return a >> kBits;
}
inline F32x16 ToFloat(I32x16 a) { return __builtin_convertvector(a, F32x16); }
// To nearest even; |a| below 2^22. Adding 1.5 * 2^23 leaves no bits for a fraction.
inline I32x16 RoundToInt(F32x16 a) {
  return (I32x16)((U32x16)(a + 12582912.0f) - FloatToBits(12582912.0f));
}
inline I32x16 Bits(F32x16 a) { return (I32x16)a; }
inline F32x16 BitCast(I32x16 a) { return (F32x16)a; }
inline I32x16 BitCast(F32x16 a) { return (I32x16)a; }

// The four bits from kBit on, minus kZero, as floats.
template <int kBit, int kZero>
inline F32x16 NibbleToFloat(I32x16 a) {
  return ToFloat(SubI(AndI(ShiftRight<kBit>(a), Set1I(15)), Set1I(kZero)));
}

// What exp_impl.h asks of any type: c in every lane, and 2^n for n from -126 to 127.
inline F32x16 Same(F32x16, float c) { return Set1(c); }
inline F32x16 PowerOf2(I32x16 n) { return BitCast(ShiftLeft<23>(AddI(n, Set1I(127)))); }

// Four bytes in every lane.
inline I32x16 Repeat4(const int8_t* x) {
  int32_t four;
  memcpy(&four, x, sizeof(four));
  return Set1I(four);
}
// sum += w0 x0 + w1 x1 + w2 x2 + w3 x3 per lane, for the lane's four weight bytes, 0 to 127, and
// the four int8 at x.
[[gnu::noinline]] I32x16 DotUnsigned(I32x16 sum, I32x16 weights, const int8_t* x) {
  uint8_t w[64];
  memcpy(w, &weights, sizeof(w));
  I32x16 r;
  for (int i = 0; i < 16; ++i) {
    const uint8_t* four = w + 4 * i;
    r[i] = sum[i] + four[0] * x[0] + four[1] * x[1] + four[2] * x[2] + four[3] * x[3];
  }
  return r;
}
// The same for int8 weights, x within +-127; PrepareSigned once per weight.
inline I32x16 PrepareSigned(I32x16 weights) { return weights; }
[[gnu::noinline]] I32x16 DotSigned(I32x16 sum, I32x16 weights, const int8_t* x) {
  int8_t w[64];
  memcpy(w, &weights, sizeof(w));
  I32x16 r;
  for (int i = 0; i < 16; ++i) {
    const int8_t* four = w + 4 * i;
    r[i] = sum[i] + four[0] * x[0] + four[1] * x[1] + four[2] * x[2] + four[3] * x[3];
  }
  return r;
}
// DotUnsigned where each lane has four x of its own; sums may wrap around.
[[gnu::noinline]] I32x16 DotBytes(I32x16 sum, I32x16 weights, I32x16 x) {
  I32x16 r;
  for (int i = 0; i < 16; ++i) {
    int8_t four[4];
    const int32_t lane = x[i];
    memcpy(four, &lane, sizeof(four));
    uint32_t w = static_cast<uint32_t>(weights[i]), dot = 0;
    for (int j = 0; j < 4; ++j, w >>= 8) dot += (w & 255) * static_cast<uint32_t>(four[j]);
    r[i] = static_cast<int32_t>(static_cast<uint32_t>(sum[i]) + dot);
  }
  return r;
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_SIMD_PORTABLE_H_
