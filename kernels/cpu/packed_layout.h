// SPDX-License-Identifier: Apache-2.0
// How packed weights lie. Sixteen rows (outputs) make a tile; a tile is one sequential stream over
// k (inputs); tiles follow each other; rows beyond the matrix are zero.
//
// PackOrder::kLanes, rows as the lanes of a vector:
// F32, F16, BF16: [k][16 rows], values as in the file.
// Quantised: groups of 32 k, in blocks of `groups` groups (8 for K-quants, else 1):
//   block:  scale f16[16 rows], minimum f16[16 rows] where the type has one, then the groups
//   group:  sub-scales [2][16 rows] bytes (K-quants), plane, quants
//   quants: 4 bits: [4][16 rows][4 bytes], byte j of vector i holds k = 4 i + j low, 16 more high;
//           8 bits: [8][16 rows][4 bytes], byte j of vector i holds k = 4 i + j, signed
//   plane:  bit 4 (and 5) of the quants, [1 or 2][16 rows][4 bytes]: with 1 bit each, bit i of byte
//           j belongs to k = 4 i + j; with 2, bits 2 i, 2 i + 1 of vector h to k = 16 h + 4 i + j
// So a 64-byte vector is four consecutive k of sixteen rows: what VPDPBUSD sums per 32-bit lane.
//
// PackOrder::kTiles, k as the lanes, so that 32 k of a row expand to one row of a tile unit:
// F32, F16, BF16: [groups of 32 k][16 rows][32 k], the last group filled up with zeros.
// Quantised: the same blocks, scales and bytes; in a group
//   quants: 4 bits: [4][32 k] words, bits 4 j .. 4 j + 3 of a word of vector i are row 4 i + j;
//           8 bits: [16 rows][16 even k, then 16 odd k]
//   plane:  with 1 bit each, [32 k] words, bit i is row i; with 2, [2][32 k] words, bits 2 j and
//           2 j + 1 of a word of vector i are row 8 i + j
//
// A weight is scale * (q - zero) (+ minimum), scale and minimum as GroupScales in linear_impl.h
// say.
#ifndef SETU_KERNELS_CPU_PACKED_LAYOUT_H_
#define SETU_KERNELS_CPU_PACKED_LAYOUT_H_

#include <stdint.h>

#include "kernels/cpu/kernel_table.h"

namespace setu::kernels {
namespace {

// Of all below and of how PackTile fills it. Files keep packed weights (Ops::Restore): raise this
// with every change by which the same weights become other bytes, also where floats are quantised
// otherwise, so that what was kept before is packed anew. A test has the bytes of this revision.
constexpr int32_t kPackRevision = 1;

constexpr int64_t kTileRows = 16;
constexpr int64_t kGroup = 32;  // k that share a scale

constexpr int64_t RoundUpToGroups(int64_t cols) { return (cols + kGroup - 1) / kGroup * kGroup; }

struct GroupLayout {
  int64_t groups;      // per block
  int64_t header;      // bytes of a block before its groups
  int64_t sub_scales;  // bytes of a group
  int64_t plane;
  int64_t quants;
  int zero;  // what stands for 0 in unsigned quants
  bool minimum;
};

constexpr int64_t GroupBytes(const GroupLayout& layout) {
  return layout.sub_scales + layout.plane + layout.quants;
}
constexpr int64_t BlockBytes(const GroupLayout& layout) {
  return layout.header + layout.groups * GroupBytes(layout);
}

constexpr bool IsQuantised(WeightType type) {
  return type != WeightType::kF32 && type != WeightType::kF16 && type != WeightType::kBF16;
}

constexpr GroupLayout LayoutOf(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0:
      return {1, 32, 0, 0, 256, 8, false};
    case WeightType::kQ4_1:
      return {1, 64, 0, 0, 256, 0, true};
    case WeightType::kQ5_0:
      return {1, 32, 0, 64, 256, 16, false};
    case WeightType::kQ5_1:
      return {1, 64, 0, 64, 256, 0, true};
    case WeightType::kQ8_0:
      return {1, 32, 0, 0, 512, 0, false};
    case WeightType::kQ4_K:
      return {8, 64, 32, 0, 256, 0, true};
    case WeightType::kQ5_K:
      return {8, 64, 32, 64, 256, 0, true};
    case WeightType::kQ6_K:
      return {8, 32, 32, 128, 256, 32, false};
    default:
      return {};
  }
}

constexpr int64_t FloatBytes(WeightType type) { return type == WeightType::kF32 ? 4 : 2; }

constexpr int64_t TilesOf(int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

constexpr int64_t TileBytes(WeightType type, int64_t cols, PackOrder order) {
  if (!IsQuantised(type)) {
    const int64_t padded = order == PackOrder::kTiles ? RoundUpToGroups(cols) : cols;
    return padded * kTileRows * FloatBytes(type);
  }
  const GroupLayout layout = LayoutOf(type);
  return cols / (kGroup * layout.groups) * BlockBytes(layout);
}

// Quantised activations of some rows, in groups of 32 k: a block of 16 rows (the last one may have
// fewer) lies [groups][rows of the block], so that tiles and lanes read what they share at once. Of
// each group 32 bytes, a scale and sums, each with room for kQuantisedRows - 1 groups beyond the
// last, which tiles read.
constexpr int64_t kQuantisedRows = 16;

// The places of a row's groups: `first`, and `step` from each to the next.
struct GroupPlaces {
  int64_t first, step;
};

constexpr GroupPlaces PlacesOf(int64_t row, int64_t rows, int64_t groups) {
  const int64_t block = row / kQuantisedRows * kQuantisedRows;
  const int64_t step = rows - block < kQuantisedRows ? rows - block : kQuantisedRows;
  return {block * groups + row - block, step};
}

// Room for the activations of a product on the bf16-tile path, however an ISA lays them out.
constexpr int64_t RoundedBytes(int64_t rows, int64_t cols) {
  return rows * RoundUpToGroups(cols) * 4;
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_PACKED_LAYOUT_H_
