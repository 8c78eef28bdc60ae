// SPDX-License-Identifier: Apache-2.0
// The tiles of linear_tiles_impl.h on AMX (Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 1, chapter 18). Instructions written out: each names the memory that it reads or
// writes as the compiler must know it, which g++ 12's intrinsics do not.
#ifndef SETU_KERNELS_CPU_AMX_TILES_IMPL_H_
#define SETU_KERNELS_CPU_AMX_TILES_IMPL_H_

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/lanes_impl.h"

namespace setu::kernels {
namespace {

// Holds the thread's tiles while it lives: 0 to 3 sums, 4 and 5 activations, 6 and 7 weights. Rows
// are 64 bytes, one after another in memory.
class AmxTiles {
 public:
  explicit AmxTiles(int64_t rows) {
    Config config;
    for (int tile = 0; tile < 8; ++tile) {
      config.row_bytes[tile] = 64;
      config.rows[tile] = static_cast<uint8_t>(tile < 6 ? rows : 16);
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
  void Load(Constant<kTile>, const void* from) {
    asm volatile("tileloadd (%0,%1), %%tmm%c2" : : "r"(from), "r"(kStride), "i"(kTile) : "memory");
  }
  template <int64_t kTile>
  void LoadOnce(Constant<kTile>, const void* from) {
    asm volatile("tileloaddt1 (%0,%1), %%tmm%c2"
                 :
                 : "r"(from), "r"(kStride), "i"(kTile)
                 : "memory");
  }
  template <int64_t kTile>
  void Store(Constant<kTile>, void* to) {
    asm volatile("tilestored %%tmm%c2, (%0,%1)" : : "r"(to), "r"(kStride), "i"(kTile) : "memory");
  }
  // sum[m][n] += for each of 16 pairs: x[m][2 i] * weights[i][2 n] and the same + 1, rule 4's
  // order.
  template <int64_t kSum, int64_t kX, int64_t kWeights>
  void Dot(Constant<kSum>, Constant<kX>, Constant<kWeights>) {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kWeights));
  }

  // VCVTNE2PS2BF16 puts the results of one operand after those of the other.
  static __m512i Join(__m512 even, __m512 odd) {
    const __m512i halves = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even));
    return _mm512_permutexvar_epi16(
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0),
        halves);
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
