// SPDX-License-Identifier: Apache-2.0
// simd_portable.h in AVX2, FMA and F16C: two registers of eight lanes.
#ifndef SETU_KERNELS_CPU_SIMD_AVX2_H_
#define SETU_KERNELS_CPU_SIMD_AVX2_H_

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

namespace setu::kernels {
namespace {

struct F32x16 {
  __m256 lo, hi;
};
struct I32x16 {
  __m256i lo, hi;
};

struct F64x16 {
  __m256d part[4];
};

constexpr int kRowBlock = 4, kPairRows = 0, kBfloatRowBlock = 2;
// Of attention, as registers allow: queries and vectors of V at once.
constexpr int kQueryBlock = 2, kValueVectors = 2;
constexpr int kProbeSums = 4, kProbeWeights = 2;  // of probe_impl.h, the same way
constexpr int kSignedZero = 0;

inline F32x16 Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void Store(float* p, F32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
// Loaded once: else each use may become a load of its own.
inline F32x16 InRegister(F32x16 a) {
  asm("" : "+x"(a.lo), "+x"(a.hi));
  return a;
}
inline I32x16 InRegister(I32x16 a) {
  asm("" : "+x"(a.lo), "+x"(a.hi));
  return a;
}
inline F32x16 Set1(float a) { return {_mm256_set1_ps(a), _mm256_set1_ps(a)}; }
inline F32x16 Add(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline F32x16 Sub(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline F32x16 Mul(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline F32x16 Div(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
inline F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline F32x16 Max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
inline F32x16 Min(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
inline F32x16 Abs(F32x16 a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
inline F32x16 SelectLess(F32x16 a, F32x16 b, F32x16 yes, F32x16 no) {
  return {_mm256_blendv_ps(no.lo, yes.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
          _mm256_blendv_ps(no.hi, yes.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}

inline uint32_t LessMask(F32x16 a, F32x16 b) {
  const int lo = _mm256_movemask_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ));
  const int hi = _mm256_movemask_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ));
  return static_cast<uint32_t>(lo | hi << 8);
}
inline F64x16 ZeroF64() { return {}; }
inline F64x16 AddF64(F64x16 sums, F32x16 a) {
  const __m128 parts[4] = {_mm256_castps256_ps128(a.lo), _mm256_extractf128_ps(a.lo, 1),
                           _mm256_castps256_ps128(a.hi), _mm256_extractf128_ps(a.hi, 1)};
  for (int i = 0; i < 4; ++i) sums.part[i] = _mm256_add_pd(sums.part[i], _mm256_cvtps_pd(parts[i]));
  return sums;
}
inline void StoreF64(double* p, F64x16 sums) {
  for (int i = 0; i < 4; ++i) _mm256_storeu_pd(p + 4 * i, sums.part[i]);
}

inline __m128i Load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline F32x16 LoadHalf(const uint16_t* p) {
  return {_mm256_cvtph_ps(Load128(p)), _mm256_cvtph_ps(Load128(p + 8))};
}
inline void StoreHalf(uint16_t* p, F32x16 a) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, kNearest));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, kNearest));
}
inline F32x16 LoadBfloat(const uint16_t* p) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(Load128(p)), 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(Load128(p + 8)), 16))};
}

inline __m256 RoundToBfloat8(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256 rounded = _mm256_castsi256_ps(_mm256_add_epi32(bits, half));
  const __m256 nan = _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
  return _mm256_and_ps(_mm256_blendv_ps(rounded, a, nan),
                       _mm256_castsi256_ps(_mm256_set1_epi32(~0xffff)));
}
inline F32x16 RoundToBfloat(F32x16 a) { return {RoundToBfloat8(a.lo), RoundToBfloat8(a.hi)}; }
inline void StoreBfloat(uint16_t* p, F32x16 a) {
  const F32x16 r = RoundToBfloat(a);
  const __m256i lo = _mm256_srli_epi32(_mm256_castps_si256(r.lo), 16);
  const __m256i hi = _mm256_srli_epi32(_mm256_castps_si256(r.hi), 16);
  const __m256i words = _mm256_packus_epi32(lo, hi);  // 0-3, 8-11 | 4-7, 12-15
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(words, 0xd8));
}

inline float ReduceAdd(F32x16 a) {
  const __m256 b = _mm256_add_ps(a.lo, a.hi);
  const __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
inline float ReduceMax(F32x16 a) {
  const __m256 b = _mm256_max_ps(a.lo, a.hi);
  const __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}

inline I32x16 LoadBytes(const void* p) {
  const __m256i* q = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}
inline I32x16 LoadU8(const uint8_t* p) {
  const __m128i raw = Load128(p);
  return {_mm256_cvtepu8_epi32(raw), _mm256_cvtepu8_epi32(_mm_srli_si128(raw, 8))};
}
inline I32x16 LoadS8(const uint8_t* p) {
  const __m128i raw = Load128(p);
  return {_mm256_cvtepi8_epi32(raw), _mm256_cvtepi8_epi32(_mm_srli_si128(raw, 8))};
}
inline void StoreS8(int8_t* p, I32x16 a) {
  const __m256i words = _mm256_packs_epi32(a.lo, a.hi);  // 0-3, 8-11 | 4-7, 12-15
  const __m256i sorted = _mm256_permute4x64_epi64(words, 0xd8);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(p),
      _mm_packs_epi16(_mm256_castsi256_si128(sorted), _mm256_extracti128_si256(sorted, 1)));
}
inline I32x16 Set1I(int32_t a) { return {_mm256_set1_epi32(a), _mm256_set1_epi32(a)}; }
inline I32x16 AddI(I32x16 a, I32x16 b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
inline int32_t ReduceAddI(I32x16 a) {
  const __m256i b = _mm256_add_epi32(a.lo, a.hi);
  const __m128i c = _mm_add_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
  const __m128i d = _mm_add_epi32(c, _mm_shuffle_epi32(c, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(d, _mm_shuffle_epi32(d, 0xb1)));
}
inline I32x16 SubI(I32x16 a, I32x16 b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
inline I32x16 MulI(I32x16 a, I32x16 b) {
  return {_mm256_mullo_epi32(a.lo, b.lo), _mm256_mullo_epi32(a.hi, b.hi)};
}
inline I32x16 AndI(I32x16 a, I32x16 b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
inline I32x16 OrI(I32x16 a, I32x16 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
template <int kBits>
inline I32x16 ShiftLeft(I32x16 a) {
  return {_mm256_slli_epi32(a.lo, kBits), _mm256_slli_epi32(a.hi, kBits)};
}
template <int kBits>
inline I32x16 ShiftRight(I32x16 a) {
  return {_mm256_srli_epi32(a.lo, kBits), _mm256_srli_epi32(a.hi, kBits)};
}
template <int kBits>
inline I32x16 ShiftRightSigned(I32x16 a) {
  return {_mm256_srai_epi32(a.lo, kBits), _mm256_srai_epi32(a.hi, kBits)};
}
inline F32x16 ToFloat(I32x16 a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
inline I32x16 RoundToInt(F32x16 a) { return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)}; }
inline I32x16 Bits(F32x16 a) { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }
inline F32x16 BitCast(I32x16 a) { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }
inline I32x16 BitCast(F32x16 a) { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }

template <int kBit, int kZero>
inline F32x16 NibbleToFloat(I32x16 a) {
  return ToFloat(SubI(AndI(ShiftRight<kBit>(a), Set1I(15)), Set1I(kZero)));
}

// What exp_impl.h asks of any type: c in every lane, and 2^n for n from -126 to 127.
inline F32x16 Same(F32x16, float c) { return Set1(c); }
inline F32x16 PowerOf2(I32x16 n) { return BitCast(ShiftLeft<23>(AddI(n, Set1I(127)))); }

inline __m256i Broadcast4(const int8_t* x) {
  int32_t four;
  memcpy(&four, x, sizeof(four));
  return _mm256_set1_epi32(four);
}
// VPMADDUBSW saturates beyond int16: 127 * 127 * 2 fits.
inline __m256i Dot8(__m256i sum, __m256i weights, __m256i x) {
  const __m256i pairs = _mm256_maddubs_epi16(weights, x);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
inline I32x16 Repeat4(const int8_t* x) { return {Broadcast4(x), Broadcast4(x)}; }
inline I32x16 DotBytes(I32x16 sum, I32x16 weights, I32x16 x) {
  return {Dot8(sum.lo, weights.lo, x.lo), Dot8(sum.hi, weights.hi, x.hi)};
}
inline I32x16 DotUnsigned(I32x16 sum, I32x16 weights, const int8_t* x) {
  const __m256i four = Broadcast4(x);
  return {Dot8(sum.lo, weights.lo, four), Dot8(sum.hi, weights.hi, four)};
}
inline I32x16 PrepareSigned(I32x16 weights) { return weights; }
// |w| * (x with w's sign): at most 128 * 127 * 2 = 32512, and no -128 is ever negated.
inline I32x16 DotSigned(I32x16 sum, I32x16 weights, const int8_t* x) {
  const __m256i four = Broadcast4(x);
  return {Dot8(sum.lo, _mm256_abs_epi8(weights.lo), _mm256_sign_epi8(four, weights.lo)),
          Dot8(sum.hi, _mm256_abs_epi8(weights.hi), _mm256_sign_epi8(four, weights.hi))};
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_SIMD_AVX2_H_
