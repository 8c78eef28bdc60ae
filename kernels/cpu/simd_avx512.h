// SPDX-License-Identifier: Apache-2.0
// simd_portable.h in AVX-512 F, BW, VL, DQ and VNNI.
#ifndef SETU_KERNELS_CPU_SIMD_AVX512_H_
#define SETU_KERNELS_CPU_SIMD_AVX512_H_

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

namespace setu::kernels {
namespace {

using F32x16 = __m512;
using I32x16 = __m512i;
struct F64x16 {
  __m512d low, high;
};

constexpr int kRowBlock = 8, kPairRows = 4, kBfloatRowBlock = 8;
// Of attention, as registers allow: queries and vectors of V at once.
constexpr int kQueryBlock = 4, kValueVectors = 4;
constexpr int kProbeSums = 12, kProbeWeights = 4;  // of probe_impl.h, the same way
constexpr int kSignedZero = 128;                   // VPDPBUSD wants unsigned weights

inline F32x16 Load(const float* p) { return _mm512_loadu_ps(p); }
inline void Store(float* p, F32x16 a) { _mm512_storeu_ps(p, a); }
// Loaded once: else each use may become a load of its own.
inline F32x16 InRegister(F32x16 a) {
  asm("" : "+v"(a));
  return a;
}
inline I32x16 InRegister(I32x16 a) {
  asm("" : "+v"(a));
  return a;
}
inline F32x16 Set1(float a) { return _mm512_set1_ps(a); }
inline F32x16 Add(F32x16 a, F32x16 b) { return _mm512_add_ps(a, b); }
inline F32x16 Sub(F32x16 a, F32x16 b) { return _mm512_sub_ps(a, b); }
inline F32x16 Mul(F32x16 a, F32x16 b) { return _mm512_mul_ps(a, b); }
inline F32x16 Div(F32x16 a, F32x16 b) { return _mm512_div_ps(a, b); }
inline F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) { return _mm512_fmadd_ps(a, b, c); }
inline float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline F32x16 Max(F32x16 a, F32x16 b) { return _mm512_max_ps(a, b); }
inline F32x16 Min(F32x16 a, F32x16 b) { return _mm512_min_ps(a, b); }
inline F32x16 Abs(F32x16 a) { return _mm512_abs_ps(a); }
inline F32x16 SelectLess(F32x16 a, F32x16 b, F32x16 yes, F32x16 no) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}

inline uint32_t LessMask(F32x16 a, F32x16 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline F64x16 ZeroF64() { return {_mm512_setzero_pd(), _mm512_setzero_pd()}; }
inline F64x16 AddF64(F64x16 sums, F32x16 a) {
  return {_mm512_add_pd(sums.low, _mm512_cvtps_pd(_mm512_castps512_ps256(a))),
          _mm512_add_pd(sums.high, _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)))};
}
inline void StoreF64(double* p, F64x16 sums) {
  _mm512_storeu_pd(p, sums.low);
  _mm512_storeu_pd(p + 8, sums.high);
}

inline F32x16 LoadHalf(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline void StoreHalf(uint16_t* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline F32x16 LoadBfloat(const uint16_t* p) {
  const __m256i raw = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16));
}

inline __m512i BfloatBits(F32x16 a) {  // in the upper half of each lane
  const __m512i bits = _mm512_castps_si512(a);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
  return _mm512_mask_add_epi32(bits, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), bits, half);
}
inline F32x16 RoundToBfloat(F32x16 a) {
  return _mm512_castsi512_ps(_mm512_and_si512(BfloatBits(a), _mm512_set1_epi32(~0xffff)));
}
inline void StoreBfloat(uint16_t* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(_mm512_srli_epi32(BfloatBits(a), 16)));
}

inline float ReduceAdd(F32x16 a) {
  const __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  const __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
inline float ReduceMax(F32x16 a) {
  const __m256 b = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  const __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}

inline I32x16 LoadBytes(const void* p) { return _mm512_loadu_si512(p); }
inline I32x16 LoadU8(const uint8_t* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline I32x16 LoadS8(const uint8_t* p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline void StoreS8(int8_t* p, I32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
}
inline I32x16 Set1I(int32_t a) { return _mm512_set1_epi32(a); }
inline I32x16 AddI(I32x16 a, I32x16 b) { return _mm512_add_epi32(a, b); }
// May wrap around, which _mm512_reduce_add_epi32 must not: g++ 12 ends it with an addition of int.
inline int32_t ReduceAddI(I32x16 a) {
  const __m256i b = _mm256_add_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
  const __m128i c = _mm_add_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
  const __m128i d = _mm_add_epi32(c, _mm_shuffle_epi32(c, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(d, _mm_shuffle_epi32(d, 0xb1)));
}
inline I32x16 SubI(I32x16 a, I32x16 b) { return _mm512_sub_epi32(a, b); }
inline I32x16 MulI(I32x16 a, I32x16 b) { return _mm512_mullo_epi32(a, b); }
inline I32x16 AndI(I32x16 a, I32x16 b) { return _mm512_and_si512(a, b); }
inline I32x16 OrI(I32x16 a, I32x16 b) { return _mm512_or_si512(a, b); }
template <int kBits>
inline I32x16 ShiftLeft(I32x16 a) {
  return _mm512_slli_epi32(a, kBits);
}
template <int kBits>
inline I32x16 ShiftRight(I32x16 a) {
  return _mm512_srli_epi32(a, kBits);
}
template <int kBits>
inline I32x16 ShiftRightSigned(I32x16 a) {
  return _mm512_srai_epi32(a, kBits);
}
inline F32x16 ToFloat(I32x16 a) { return _mm512_cvtepi32_ps(a); }
inline I32x16 RoundToInt(F32x16 a) { return _mm512_cvtps_epi32(a); }
inline I32x16 Bits(F32x16 a) { return _mm512_castps_si512(a); }
inline F32x16 BitCast(I32x16 a) { return _mm512_castsi512_ps(a); }
inline I32x16 BitCast(F32x16 a) { return _mm512_castps_si512(a); }

// VPERMPS looks at the low four bits of each index alone.
template <int kBit, int kZero>
inline F32x16 NibbleToFloat(I32x16 a) {
  const __m512 values = _mm512_setr_ps(
      0 - kZero, 1 - kZero, 2 - kZero, 3 - kZero, 4 - kZero, 5 - kZero, 6 - kZero, 7 - kZero,
      8 - kZero, 9 - kZero, 10 - kZero, 11 - kZero, 12 - kZero, 13 - kZero, 14 - kZero, 15 - kZero);
  return _mm512_permutexvar_ps(_mm512_srli_epi32(a, kBit), values);
}

// What exp_impl.h asks of any type: c in every lane, and 2^n for n from -126 to 127.
inline F32x16 Same(F32x16, float c) { return Set1(c); }
inline F32x16 PowerOf2(I32x16 n) { return BitCast(ShiftLeft<23>(AddI(n, Set1I(127)))); }

inline I32x16 Broadcast4(const int8_t* x) {
  int32_t four;
  memcpy(&four, x, sizeof(four));
  return _mm512_set1_epi32(four);
}
inline I32x16 Repeat4(const int8_t* x) { return Broadcast4(x); }
inline I32x16 DotBytes(I32x16 sum, I32x16 weights, I32x16 x) {
  return _mm512_dpbusd_epi32(sum, weights, x);
}
inline I32x16 DotUnsigned(I32x16 sum, I32x16 weights, const int8_t* x) {
  return _mm512_dpbusd_epi32(sum, weights, Broadcast4(x));
}
inline I32x16 PrepareSigned(I32x16 weights) {
  return _mm512_xor_si512(weights, _mm512_set1_epi8(-128));
}
inline I32x16 DotSigned(I32x16 sum, I32x16 weights, const int8_t* x) {
  return _mm512_dpbusd_epi32(sum, weights, Broadcast4(x));
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_SIMD_AVX512_H_
