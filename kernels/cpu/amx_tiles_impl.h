// SPDX-License-Identifier: Apache-2.0
// The tiles of linear_tiles_impl.h and attention_tiles_impl.h on AMX (Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 1, chapter 18). Instructions written out: each
// names the memory that it reads or writes as the compiler must know it, which g++ 12's intrinsics
// do not.
#ifndef SETU_KERNELS_CPU_AMX_TILES_IMPL_H_
#define SETU_KERNELS_CPU_AMX_TILES_IMPL_H_

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/lanes_impl.h"

namespace setu::kernels {
namespace {

// Holds the thread's tiles while it lives: 0 to 3 sums, of `rows` rows and `columns` columns of 32
// bits; 4 and 5 left operands, of as many rows and `depth` columns; 6 and 7 right ones, of `depth`
// rows.
class AmxTiles {
 public:
  explicit AmxTiles(int64_t columns, int64_t rows = 16, int64_t depth = 16) {
    Config config;
    for (int tile = 0; tile < 8; ++tile) {
      config.row_bytes[tile] = static_cast<uint16_t>(4 * (tile / 2 == 2 ? depth : columns));
      config.rows[tile] = static_cast<uint8_t>(tile < 6 ? rows : depth);
    }
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  ~AmxTiles() { asm volatile("tilerelease"); }  // else every switch of threads would save them
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

  template <int64_t kTile>
  void Zero(Constant<kTile>) {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int64_t kTile>
  void Load(Constant<kTile>, const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int64_t kTile>
  void LoadOnce(Constant<kTile>, const void* from, int64_t stride) {
    asm volatile("tileloaddt1 (%0,%1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int64_t kTile>
  void Store(Constant<kTile>, void* to) {
    asm volatile("tilestored %%tmm%c2, (%0,%1)" : : "r"(to), "r"(kStride), "i"(kTile) : "memory");
  }
  // sum[m][n] += for each of 16 pairs: left[m][2 i] * right[i][2 n] and the same + 1, in the order
  // of rule 4.
  template <int64_t kSum, int64_t kLeft, int64_t kRight>
  void Dot(Constant<kSum>, Constant<kLeft>, Constant<kRight>) {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kLeft), "i"(kRight));
  }
  // sum[m][n] += left[m][i] * right[i][n] for each i, of which each is four signed bytes.
  template <int64_t kSum, int64_t kLeft, int64_t kRight>
  void DotBytes(Constant<kSum>, Constant<kLeft>, Constant<kRight>) {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kLeft), "i"(kRight));
  }

  static __m512i Join(__m512 low, __m512 high) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
  }
  static __m512i JoinAway(__m512 even, __m512 odd) {
    const __m512i half = _mm512_set1_epi32(0x8000);
    const __m512i down = _mm512_set4_epi32(0x0f0e0f0e, 0x0b0a0b0a, 0x07060706, 0x03020302);
    return _mm512_mask_shuffle_epi8(_mm512_add_epi32(_mm512_castps_si512(odd), half),
                                    0x3333333333333333,
                                    _mm512_add_epi32(_mm512_castps_si512(even), half), down);
  }
  static __m512i Lookup(__m512i table, __m512i index) {
    return _mm512_permutexvar_epi16(index, table);
  }
  template <int kBits>
  static __m512i ShiftWords(__m512i words) {
    if constexpr (kBits >= 0) return _mm512_srli_epi16(words, kBits);
    if constexpr (kBits < 0) return _mm512_slli_epi16(words, -kBits);
  }
  static __m512 Halves(float low, float high) {
    return _mm512_mask_broadcastss_ps(_mm512_set1_ps(low), 0xff00, _mm_set_ss(high));
  }
  static void Transpose(const uint32_t* from, uint32_t* to) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __m512i rows[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) rows[i] = _mm512_loadu_si512(from + 16 * i);
      // Swaps blocks of `size` x `size` words across the diagonal of those twice as large.
#pragma GCC unroll 4
    for (int size = 1; size < 16; size *= 2) {
      const __mmask16 upper = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(size));
      const __m512i low = _mm512_mask_add_epi32(lane, upper, lane, _mm512_set1_epi32(16 - size));
      const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(size));
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        if (i & size) continue;
        const __m512i a = rows[i], b = rows[i + size];
        rows[i] = _mm512_permutex2var_epi32(a, low, b);
        rows[i + size] = _mm512_permutex2var_epi32(a, high, b);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + 16 * i, rows[i]);
  }

 private:
  static constexpr int64_t kStride = 64;
  struct Config {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };
};

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_AMX_TILES_IMPL_H_
