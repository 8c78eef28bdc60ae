// SPDX-License-Identifier: Apache-2.0
// Activations as the products of linear_tiles_impl.h take them, rounded to bfloat16 once. Words:
// what Tiles offers there.
#ifndef SETU_KERNELS_CPU_TILE_ROWS_IMPL_H_
#define SETU_KERNELS_CPU_TILE_ROWS_IMPL_H_

#include <stdint.h>
#include <string.h>

#include "kernels/cpu/lanes_impl.h"
#include "kernels/cpu/packed_layout.h"

namespace setu::kernels {
namespace {

constexpr int64_t kTileWords = 256;  // 32-bit words of a tile
constexpr int64_t kBlockSteps = 16;  // of 32 k, that stay near

// Rounded activations: [blocks of 16 steps][tiles of 16 rows][step][pair of k][row][2], bfloat16.
// Fewer than 16 rows make a narrower tile; the last of several tiles is whole, and what is in rows
// beyond x reaches no output.
struct RoundedRows {
  int64_t steps, tiles, width;

  RoundedRows(int64_t rows, int64_t cols)
      : steps(RoundUpToGroups(cols) / kGroup),
        tiles((rows + kTileRows - 1) / kTileRows),
        width(Smaller(rows, kTileRows)) {}
  int64_t StepsAt(int64_t block) const { return Smaller(kBlockSteps, steps - block); }
  int64_t TileBytes() const { return width * 64; }
  int64_t Offset(int64_t tile, int64_t step) const {  // in bytes
    const int64_t block = step / kBlockSteps * kBlockSteps;
    return (block * tiles + tile * StepsAt(block) + step - block) * TileBytes();
  }
};

template <class Tiles>
void RoundRowsForTiles(const float* x, int64_t x_stride, int64_t cols, int64_t row, int64_t count,
                       int64_t rows, uint8_t* rounded) {
  const RoundedRows place(rows, cols);
  alignas(64) uint32_t words[kTileWords] = {};  // [row][pair of k]
  alignas(64) uint32_t across[kTileWords];      // [pair of k][row]
  for (int64_t step = 0; step < place.steps; ++step) {
    const auto half = [&](int64_t i, int64_t k) {
      return k < cols ? WithoutSubnormals(LoadPart(x + i * x_stride + k, cols - k)) : Set1(0.0f);
    };
    for (int64_t i = 0; i < count; ++i) {
      const I32x16 pairs = Tiles::Join(half(i, step * kGroup), half(i, step * kGroup + kLanes));
      Store(reinterpret_cast<float*>(words + i * kLanes), BitCast(pairs));
    }
    uint32_t* tile = reinterpret_cast<uint32_t*>(rounded + place.Offset(row / kTileRows, step));
    if (place.width == 1) {
      memcpy(tile, words, 64);
    } else if (place.width == kTileRows) {
      Tiles::Transpose(words, tile);
    } else {
      Tiles::Transpose(words, across);
      for (int64_t pair = 0; pair < kLanes; ++pair) {
        StorePart(reinterpret_cast<float*>(tile + pair * place.width),
                  Load(reinterpret_cast<const float*>(across + pair * kTileRows)), place.width);
      }
    }
  }
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_TILE_ROWS_IMPL_H_
