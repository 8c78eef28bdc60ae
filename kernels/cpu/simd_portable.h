// SPDX-License-Identifier: Apache-2.0
// Sixteen lanes in plain C++: the definition of what simd_avx2.h and simd_avx512.h do faster. Ops
// are written once over these names, so every ISA gives the same bits.
//
//   F32x16, I32x16   sixteen floats, sixteen int32 (or 64 bytes: four per lane, little endian)
//   kRowBlock        rows of x that one pass over a weight tile serves
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

struct F32x16 {
  float v[16];
};
struct I32x16 {
  int32_t v[16];
};

constexpr int kRowBlock = 4;
constexpr int kSignedZero = 0;

template <class Result, class F>
inline Result EachLane(const F& f) {
  Result r;
  for (int i = 0; i < 16; ++i) r.v[i] = f(i);
  return r;
}

inline F32x16 Load(const float* p) {
  return EachLane<F32x16>([&](int i) { return p[i]; });
}
inline void Store(float* p, const F32x16& a) { memcpy(p, a.v, sizeof(a.v)); }
inline F32x16 Set1(float a) {
  return EachLane<F32x16>([&](int) { return a; });
}
inline F32x16 Add(const F32x16& a, const F32x16& b) {
  return EachLane<F32x16>([&](int i) { return a.v[i] + b.v[i]; });
}
inline F32x16 Sub(const F32x16& a, const F32x16& b) {
  return EachLane<F32x16>([&](int i) { return a.v[i] - b.v[i]; });
}
inline F32x16 Mul(const F32x16& a, const F32x16& b) {
  return EachLane<F32x16>([&](int i) { return a.v[i] * b.v[i]; });
}
inline F32x16 Div(const F32x16& a, const F32x16& b) {
  return EachLane<F32x16>([&](int i) { return a.v[i] / b.v[i]; });
}
// a * b + c, rounded once.
inline F32x16 Fma(const F32x16& a, const F32x16& b, const F32x16& c) {
  return EachLane<F32x16>([&](int i) { return fmaf(a.v[i], b.v[i], c.v[i]); });
}
inline float Fma(float a, float b, float c) { return fmaf(a, b, c); }
// The second operand where they are equal or one is NaN, as MAXPS and MINPS.
inline F32x16 Max(const F32x16& a, const F32x16& b) {
  return EachLane<F32x16>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline F32x16 Min(const F32x16& a, const F32x16& b) {
  return EachLane<F32x16>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline F32x16 Abs(const F32x16& a) {
  return EachLane<F32x16>([&](int i) { return BitsToFloat(FloatToBits(a.v[i]) & 0x7fffffffu); });
}
// a < b ? yes : no, per lane.
inline F32x16 SelectLess(const F32x16& a, const F32x16& b, const F32x16& yes, const F32x16& no) {
  return EachLane<F32x16>([&](int i) { return a.v[i] < b.v[i] ? yes.v[i] : no.v[i]; });
}

inline F32x16 LoadHalf(const uint16_t* p) {
  return EachLane<F32x16>([&](int i) { return HalfToFloat(p[i]); });
}
inline void StoreHalf(uint16_t* p, const F32x16& a) {
  for (int i = 0; i < 16; ++i) p[i] = FloatToHalf(a.v[i]);
}
inline F32x16 LoadBfloat(const uint16_t* p) {
  return EachLane<F32x16>([&](int i) { return BfloatToFloat(p[i]); });
}

// The fixed trees of all sums and maxima: lanes 8 apart, then 4, 2, 1.
inline float ReduceAdd(F32x16 a) {
  for (int distance = 8; distance > 0; distance /= 2) {
    for (int i = 0; i < distance; ++i) a.v[i] = a.v[i] + a.v[i + distance];
  }
  return a.v[0];
}
inline float ReduceMax(F32x16 a) {
  for (int distance = 8; distance > 0; distance /= 2) {
    for (int i = 0; i < distance; ++i)
      a.v[i] = a.v[i] > a.v[i + distance] ? a.v[i] : a.v[i + distance];
  }
  return a.v[0];
}
// Lane i of the result is ReduceAdd(a[i]).
inline F32x16 ReduceAdd16(const F32x16* a) {
  return EachLane<F32x16>([&](int i) { return ReduceAdd(a[i]); });
}

inline I32x16 LoadBytes(const void* p) {
  I32x16 r;
  memcpy(r.v, p, sizeof(r.v));
  return r;
}
inline I32x16 LoadU8(const uint8_t* p) {
  return EachLane<I32x16>([&](int i) { return int32_t{p[i]}; });
}
inline I32x16 LoadS8(const uint8_t* p) {
  return EachLane<I32x16>([&](int i) { return int32_t{static_cast<int8_t>(p[i])}; });
}
inline void StoreS8(int8_t* p, const I32x16& a) {  // values within a byte
  for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(a.v[i]);
}
inline I32x16 Set1I(int32_t a) {
  return EachLane<I32x16>([&](int) { return a; });
}
inline I32x16 AddI(const I32x16& a, const I32x16& b) {
  return EachLane<I32x16>([&](int i) {
    return static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) + static_cast<uint32_t>(b.v[i]));
  });
}
inline I32x16 SubI(const I32x16& a, const I32x16& b) {
  return EachLane<I32x16>([&](int i) {
    return static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) - static_cast<uint32_t>(b.v[i]));
  });
}
inline I32x16 MulI(const I32x16& a, const I32x16& b) {
  return EachLane<I32x16>([&](int i) {
    return static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) * static_cast<uint32_t>(b.v[i]));
  });
}
inline I32x16 AndI(const I32x16& a, const I32x16& b) {
  return EachLane<I32x16>([&](int i) { return a.v[i] & b.v[i]; });
}
inline I32x16 OrI(const I32x16& a, const I32x16& b) {
  return EachLane<I32x16>([&](int i) { return a.v[i] | b.v[i]; });
}
template <int kBits>
inline I32x16 ShiftLeft(const I32x16& a) {
  return EachLane<I32x16>(
      [&](int i) { return static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) << kBits); });
}
template <int kBits>
inline I32x16 ShiftRight(const I32x16& a) {  // zeros come in
  return EachLane<I32x16>(
      [&](int i) { return static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) >> kBits); });
}
template <int kBits>
inline I32x16 ShiftRightSigned(const I32x16& a) {
  return EachLane<I32x16>([&](int i) { return a.v[i] >> kBits; });
}
inline F32x16 ToFloat(const I32x16& a) {
  return EachLane<F32x16>([&](int i) { return static_cast<float>(a.v[i]); });
}
// To nearest even; |a| below 2^22. Adding 1.5 * 2^23 leaves no bits for a fraction.
inline I32x16 RoundToInt(const F32x16& a) {
  return EachLane<I32x16>([&](int i) {
    return static_cast<int32_t>(FloatToBits(a.v[i] + 12582912.0f) - FloatToBits(12582912.0f));
  });
}
inline F32x16 BitCast(const I32x16& a) { return __builtin_bit_cast(F32x16, a); }

// What exp_impl.h asks of any type: c in every lane, and 2^n for n from -126 to 127.
inline F32x16 Same(const F32x16&, float c) { return Set1(c); }
inline F32x16 PowerOf2(const I32x16& n) { return BitCast(ShiftLeft<23>(AddI(n, Set1I(127)))); }

// sum += w0 x0 + w1 x1 + w2 x2 + w3 x3 per lane, for the lane's four weight bytes, 0 to 127, and
// the four int8 at x.
inline I32x16 DotUnsigned(const I32x16& sum, const I32x16& weights, const int8_t* x) {
  const uint8_t* w = reinterpret_cast<const uint8_t*>(weights.v);
  return EachLane<I32x16>([&](int i) {
    return sum.v[i] + w[4 * i] * x[0] + w[4 * i + 1] * x[1] + w[4 * i + 2] * x[2] +
           w[4 * i + 3] * x[3];
  });
}
// The same for int8 weights, x within +-127; PrepareSigned once per weight.
inline I32x16 PrepareSigned(const I32x16& weights) { return weights; }
inline I32x16 DotSigned(const I32x16& sum, const I32x16& weights, const int8_t* x) {
  const int8_t* w = reinterpret_cast<const int8_t*>(weights.v);
  return EachLane<I32x16>([&](int i) {
    return sum.v[i] + w[4 * i] * x[0] + w[4 * i + 1] * x[1] + w[4 * i + 2] * x[2] +
           w[4 * i + 3] * x[3];
  });
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_SIMD_PORTABLE_H_
