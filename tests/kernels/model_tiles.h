// SPDX-License-Identifier: Apache-2.0
// The tiles of kernels/cpu/linear_tiles_impl.h and attention_tiles_impl.h in plain C++: shows on
// any machine that blocks, layouts and edges are right, so that only the instructions themselves
// wait for a machine with AMX. A simd_*.h comes before.
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
  explicit ModelTiles(int64_t columns, int64_t rows = 16) : columns_(columns), rows_(rows) {
    std::memset(tiles_, 0xff, sizeof(tiles_));
  }

  template <int64_t kTile>
  void Zero(Constant<kTile>) {
    std::memset(tiles_[kTile], 0, sizeof(tiles_[kTile]));
  }
  template <int64_t kTile>
  void Load(Constant<kTile> tile, const void* from, int64_t stride) {
    Zero(tile);
    for (int64_t row = 0; row < Rows(kTile); ++row) {
      std::memcpy(tiles_[kTile][row], static_cast<const uint8_t*>(from) + row * stride,
                  RowBytes(kTile));
    }
  }
  template <int64_t kTile>
  void LoadOnce(Constant<kTile> tile, const void* from, int64_t stride) {
    Load(tile, from, stride);
  }
  template <int64_t kTile>
  void Store(Constant<kTile>, void* to) {
    for (int64_t row = 0; row < Rows(kTile); ++row) {
      std::memcpy(static_cast<uint8_t*>(to) + row * 64, tiles_[kTile][row], RowBytes(kTile));
    }
  }

  // TDPBF16PS; its model was compared with the instruction.
  template <int64_t kSum, int64_t kLeft, int64_t kRight>
  void Dot(Constant<kSum>, Constant<kLeft>, Constant<kRight>) {
    for (int64_t m = 0; m < rows_; ++m) {
      for (int64_t n = 0; n < columns_; ++n) {
        float even = 0, odd = 0;
        for (int64_t i = 0; i < 16; ++i) {
          const uint32_t left = tiles_[kLeft][m][i], right = tiles_[kRight][i][n];
          even = std::fma(Low(left), Low(right), even);
          odd = std::fma(High(left), High(right), odd);
        }
        uint32_t& sum = tiles_[kSum][m][n];
        sum = FloatToBits(BitsToFloat(sum) + (even + odd));
      }
    }
  }

  static I32x16 Join(F32x16 low, F32x16 high) {
    float values[32];
    kernels::Store(values, low);
    kernels::Store(values + 16, high);
    uint16_t words[32];
    for (int i = 0; i < 32; ++i) words[i] = FloatToBfloat(values[i]);
    return LoadBytes(words);
  }
  static I32x16 JoinAway(F32x16 even, F32x16 odd) {
    float values[2][16];
    kernels::Store(values[0], even);
    kernels::Store(values[1], odd);
    uint16_t words[32];
    for (int i = 0; i < 32; ++i) {
      words[i] = static_cast<uint16_t>((FloatToBits(values[i % 2][i / 2]) + 0x8000) >> 16);
    }
    return LoadBytes(words);
  }
  static I32x16 Lookup(I32x16 table, I32x16 index) {
    uint16_t values[32], words[32];
    std::memcpy(values, &table, sizeof(values));
    std::memcpy(words, &index, sizeof(words));
    for (uint16_t& word : words) word = values[word & 31];
    return LoadBytes(words);
  }
  template <int kBits>
  static I32x16 ShiftWords(I32x16 from) {
    uint16_t words[32];
    std::memcpy(words, &from, sizeof(words));
    for (uint16_t& word : words) {
      word = static_cast<uint16_t>(kBits >= 0 ? word >> kBits : word << -kBits);
    }
    return LoadBytes(words);
  }
  static F32x16 Halves(float low, float high) {
    float values[16];
    for (int i = 0; i < 16; ++i) values[i] = i < 8 ? low : high;
    return kernels::Load(values);
  }
  static void Transpose(const uint32_t* from, uint32_t* to) {
    uint32_t rows[16][16];
    for (int i = 0; i < 256; ++i) rows[i % 16][i / 16] = from[i];
    std::memcpy(to, rows, sizeof(rows));
  }

 private:
  static float Low(uint32_t pair) { return BfloatToFloat(static_cast<uint16_t>(pair)); }
  static float High(uint32_t pair) { return BfloatToFloat(static_cast<uint16_t>(pair >> 16)); }
  int64_t Rows(int64_t tile) const { return tile < 6 ? rows_ : 16; }
  size_t RowBytes(int64_t tile) const {
    return static_cast<size_t>(tile / 2 == 2 ? 16 : columns_) * 4;
  }

  const int64_t columns_, rows_;
  uint32_t tiles_[8][16][16];
};

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_TESTS_KERNELS_MODEL_TILES_H_
