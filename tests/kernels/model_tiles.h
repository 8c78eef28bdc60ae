// SPDX-License-Identifier: Apache-2.0
// The tiles of kernels/cpu/linear_tiles_impl.h in plain C++: shows on any machine that blocks,
// layouts and edges are right, so that only the instructions themselves wait for a machine with
// AMX. A simd_*.h comes before.
#ifndef SETU_TESTS_KERNELS_MODEL_TILES_H_
#define SETU_TESTS_KERNELS_MODEL_TILES_H_

#include <cmath>
#include <cstring>

#include "kernels/cpu/half.h"
#include "kernels/cpu/lanes_impl.h"

namespace setu::kernels {
namespace {

class ModelTiles {
 public:
  // Until it is loaded or zeroed, a tile holds NaNs.
  explicit ModelTiles(int64_t rows) : rows_(rows) { std::memset(tiles_, 0xff, sizeof(tiles_)); }

  template <int64_t kTile>
  void Zero(Constant<kTile>) {
    std::memset(tiles_[kTile], 0, sizeof(tiles_[kTile]));
  }
  template <int64_t kTile>
  void Load(Constant<kTile> tile, const void* from) {
    Zero(tile);
    std::memcpy(tiles_[kTile], from, Bytes(kTile));
  }
  template <int64_t kTile>
  void LoadOnce(Constant<kTile> tile, const void* from) {
    Load(tile, from);
  }
  template <int64_t kTile>
  void Store(Constant<kTile>, void* to) {
    std::memcpy(to, tiles_[kTile], Bytes(kTile));
  }

  // TDPBF16PS; its model was compared with the instruction.
  template <int64_t kSum, int64_t kX, int64_t kWeights>
  void Dot(Constant<kSum>, Constant<kX>, Constant<kWeights>) {
    for (int64_t m = 0; m < rows_; ++m) {
      for (int64_t n = 0; n < 16; ++n) {
        float even = 0, odd = 0;
        for (int64_t i = 0; i < 16; ++i) {
          const uint32_t x = tiles_[kX][m][i], w = tiles_[kWeights][i][n];
          even = std::fma(Low(x), Low(w), even);
          odd = std::fma(High(x), High(w), odd);
        }
        uint32_t& sum = tiles_[kSum][m][n];
        sum = FloatToBits(BitsToFloat(sum) + (even + odd));
      }
    }
  }

  static I32x16 Join(F32x16 even, F32x16 odd) {
    float low[16], high[16];
    kernels::Store(low, even);
    kernels::Store(high, odd);
    uint32_t pairs[16];
    for (int i = 0; i < 16; ++i) {
      pairs[i] = FloatToBfloat(low[i]) | uint32_t{FloatToBfloat(high[i])} << 16;
    }
    return LoadBytes(pairs);
  }

 private:
  static float Low(uint32_t pair) { return BfloatToFloat(static_cast<uint16_t>(pair)); }
  static float High(uint32_t pair) { return BfloatToFloat(static_cast<uint16_t>(pair >> 16)); }
  size_t Bytes(int64_t tile) const { return static_cast<size_t>(tile < 6 ? rows_ : 16) * 64; }

  const int64_t rows_;
  uint32_t tiles_[8][16][16];
};

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_TESTS_KERNELS_MODEL_TILES_H_
