// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/packed_matrix.h"

#include <algorithm>
#include <cstring>

#include "kernels/check.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/packed_layout.h"
#include "kernels/huge_pages.h"
#include "kernels/numa.h"
#include "kernels/quantise.h"

namespace setu::kernels {
namespace {

// 32 consecutive weights of one row, in a form that all block types share.
struct Group {
  uint8_t q[kGroup];  // unsigned quants; the bytes of int8 for Q8_0
  uint8_t scale[2];   // f16 of the block
  uint8_t minimum[2];
  uint8_t sub_scales[2];  // K-quants: scale and minimum, or (Q6_K) a scale per 16
};

void ReadNibbles(const uint8_t* bytes, Group& group) {
  for (int i = 0; i < 16; ++i) {
    group.q[i] = bytes[i] & 15;
    group.q[i + 16] = bytes[i] >> 4;
  }
}

// Q4_0 {d, nibbles}, Q4_1 {d, m, nibbles}, Q5_0 {d, bits, nibbles}, Q5_1 {d, m, bits, nibbles}.
void ReadSimpleGroup(WeightType type, const uint8_t* block, Group& group) {
  const bool minimum = LayoutOf(type).minimum;
  const bool fifth_bit = LayoutOf(type).plane != 0;
  std::memcpy(group.scale, block, 2);
  if (minimum) std::memcpy(group.minimum, block + 2, 2);
  const uint8_t* rest = block + (minimum ? 4 : 2);
  if (type == WeightType::kQ8_0) {
    std::memcpy(group.q, rest, kGroup);
    return;
  }
  ReadNibbles(rest + (fifth_bit ? 4 : 0), group);
  if (!fifth_bit) return;
  for (int i = 0; i < kGroup; ++i) group.q[i] |= (rest[i / 8] >> (i % 8) & 1) << 4;
}

// The 6-bit scale and minimum of group j, out of 12 bytes (Q4_K and Q5_K).
void ReadSixBitScales(const uint8_t* packed, int64_t j, Group& group) {
  if (j < 4) {
    group.sub_scales[0] = packed[j] & 63;
    group.sub_scales[1] = packed[j + 4] & 63;
  } else {
    group.sub_scales[0] = (packed[j + 4] & 15) | packed[j - 4] >> 6 << 4;
    group.sub_scales[1] = packed[j + 4] >> 4 | packed[j] >> 6 << 4;
  }
}

// Q4_K {d, dmin, scales 12, nibbles 128}, Q5_K {d, dmin, scales 12, bits 32, nibbles 128}: 64
// values share 32 bytes of nibbles, low then high; bit j of byte i of `bits` belongs to value 32 j
// + i.
void ReadK45Group(WeightType type, const uint8_t* block, int64_t j, Group& group) {
  std::memcpy(group.scale, block, 2);
  std::memcpy(group.minimum, block + 2, 2);
  ReadSixBitScales(block + 4, j, group);
  const uint8_t* bits = block + 16;
  const uint8_t* nibbles = bits + (type == WeightType::kQ5_K ? 32 : 0) + 32 * (j / 2);
  for (int i = 0; i < kGroup; ++i) {
    group.q[i] = j % 2 == 0 ? nibbles[i] & 15 : nibbles[i] >> 4;
    if (type == WeightType::kQ5_K) group.q[i] |= (bits[i] >> j & 1) << 4;
  }
}

// Q6_K {low nibbles 128, high pairs 64, scales 16, d}: each half of 128 values shares 64 bytes of
// nibbles and 32 bytes of pairs; its four groups are low, low, high, high nibbles.
void ReadK6Group(const uint8_t* block, int64_t j, Group& group) {
  const int64_t half = j / 4, part = j % 4;
  const uint8_t* nibbles = block + 64 * half + 32 * (part % 2);
  const uint8_t* pairs = block + 128 + 32 * half;
  for (int i = 0; i < kGroup; ++i) {
    const uint8_t low = part < 2 ? nibbles[i] & 15 : nibbles[i] >> 4;
    group.q[i] = low | (pairs[i] >> (2 * part) & 3) << 4;
  }
  std::memcpy(group.sub_scales, block + 192 + 2 * j, 2);
  std::memcpy(group.scale, block + 208, 2);
}

Group ReadGroup(WeightType type, const uint8_t* row, int64_t g) {
  Group group = {};
  const int64_t groups = LayoutOf(type).groups;
  const uint8_t* block = row + g / groups * BlockBytes(type);
  if (groups == 1) {
    ReadSimpleGroup(type, block, group);
  } else if (type == WeightType::kQ6_K) {
    ReadK6Group(block, g % groups, group);
  } else {
    ReadK45Group(type, block, g % groups, group);
  }
  return group;
}

float ReadFloat(WeightType type, const uint8_t* row, int64_t k) {
  if (type == WeightType::kF32) {
    float value;
    std::memcpy(&value, row + k * sizeof(value), sizeof(value));
    return value;
  }
  uint16_t value;
  std::memcpy(&value, row + k * sizeof(value), sizeof(value));
  return type == WeightType::kF16 ? HalfToFloat(value) : BfloatToFloat(value);
}

// Of a row of floats, quantised to `type`.
Group QuantiseGroup(WeightType from, const uint8_t* row, int64_t g, WeightType type) {
  float values[kGroup];
  for (int64_t k = 0; k < kGroup; ++k) values[k] = ReadFloat(from, row, g * kGroup + k);
  std::byte block[sizeof(values)];
  QuantiseRow(type, values, kGroup, block);
  Group group = {};
  ReadSimpleGroup(type, reinterpret_cast<const uint8_t*>(block), group);
  return group;
}

// Quants of a row that is a lane of the tile.
void WriteLane(const GroupLayout& layout, const uint8_t* q, int64_t lane, uint8_t* plane) {
  uint8_t* p = plane + 4 * lane;
  for (int k = 0; k < kGroup && layout.plane == 64; ++k) p[k % 4] |= (q[k] >> 4) << (k / 4);
  for (int k = 0; k < kGroup && layout.plane == 128; ++k) {
    p[64 * (k / 16) + k % 4] |= (q[k] >> 4) << (2 * (k % 16 / 4));
  }
  p += layout.plane;
  for (int k = 0; k < kGroup && layout.quants == 256; ++k) {
    p[64 * (k % 16 / 4) + k % 4] |= (q[k] & 15) << (k < 16 ? 0 : 4);
  }
  for (int k = 0; k < kGroup && layout.quants == 512; ++k) p[64 * (k / 4) + k % 4] = q[k];
}

// Quants of a row whose k are the lanes.
void WriteTileRow(const GroupLayout& layout, const uint8_t* q, int64_t row, uint8_t* plane) {
  uint8_t* quants = plane + layout.plane;
  for (int64_t k = 0; k < kGroup && layout.quants == 512; ++k) {
    quants[row * kGroup + k % 2 * 16 + k / 2] = q[k];
  }
  // `bits` of q[k] to their place among `rows` rows that share the words of a vector.
  const auto put = [&](uint8_t* vectors, int64_t rows, int64_t k, int bits) {
    uint8_t* word = vectors + row / rows * 64 + 2 * k;
    const int64_t at = row % rows * (16 / rows);
    word[at / 8] |= static_cast<uint8_t>(bits << at % 8);
  };
  for (int64_t k = 0; k < kGroup && layout.quants == 256; ++k) put(quants, 4, k, q[k] & 15);
  for (int64_t k = 0; k < kGroup && layout.plane == 64; ++k) put(plane, 16, k, q[k] >> 4);
  for (int64_t k = 0; k < kGroup && layout.plane == 128; ++k) put(plane, 8, k, q[k] >> 4);
}

void WriteGroup(const WeightsView& view, const Group& group, int64_t g, int64_t row,
                uint8_t* tile) {
  const GroupLayout layout = LayoutOf(view.type);
  uint8_t* block = tile + g / layout.groups * BlockBytes(layout);
  std::memcpy(block + 2 * row, group.scale, 2);
  if (layout.minimum) std::memcpy(block + 2 * (kTileRows + row), group.minimum, 2);
  uint8_t* p = block + layout.header + g % layout.groups * GroupBytes(layout);
  if (layout.sub_scales != 0) {
    p[row] = group.sub_scales[0];
    p[kTileRows + row] = group.sub_scales[1];
  }
  const auto write = view.order == PackOrder::kLanes ? WriteLane : WriteTileRow;
  write(layout, group.q, row, p + layout.sub_scales);
}

// A row of floats.
void WriteFloats(const WeightsView& view, const uint8_t* from, int64_t row, uint8_t* tile) {
  const int64_t size = FloatBytes(view.type);
  for (int64_t k = 0; k < view.cols; ++k) {
    const int64_t place = view.order == PackOrder::kLanes
                              ? k * kTileRows + row
                              : (k / kGroup * kTileRows + row) * kGroup + k % kGroup;
    std::memcpy(tile + place * size, from + k * size, size);
  }
}

}  // namespace

CpuMatrix::CpuMatrix(WeightType type, int64_t rows, int64_t cols, PackOrder order,
                     std::span<const int> nodes) {
  SETU_KERNEL_CHECK(rows > 0 && cols > 0 && cols % BlockValues(type) == 0,
                    "columns are whole blocks of the type");
  view_ = {type, order, rows, cols, TileBytes(type, cols, order), nullptr};
  bytes_ = static_cast<size_t>(tiles() * view_.tile_bytes);
  const bool large = bytes_ >= kHugePage;
  const size_t alignment = large ? kHugePage : 64;
  const size_t allocated = (bytes_ + alignment - 1) / alignment * alignment;
  data_.reset(static_cast<uint8_t*>(std::aligned_alloc(alignment, allocated)));
  SETU_KERNEL_CHECK(data_ != nullptr, "the host has memory for the weights");
  if (large) AskForHugePages(data_.get(), bytes_);
  if (large) Spread(room(), nodes);
  view_.tiles = data_.get();
}

int64_t CpuMatrix::tiles() const { return TilesOf(view_.rows); }

void CpuMatrix::PackTile(const RawMatrix& raw, int64_t tile) {
  const WeightType type = view_.type;
  SETU_KERNEL_CHECK(raw.rows == view_.rows && raw.cols == view_.cols,
                    "raw weights have the shape of their packed matrix");
  SETU_KERNEL_CHECK(raw.type == type || (!IsQuantised(raw.type) && LayoutOf(type).groups == 1),
                    "raw weights have the type of their packed matrix, or become it by groups");
  const int64_t row_bytes = RowBytes(raw.type, raw.cols);
  uint8_t* to = data_.get() + tile * view_.tile_bytes;
  // Its first touch: by the thread that packs it, so that all share in it and it is in the cache.
  std::memset(to, 0, view_.tile_bytes);
  for (int64_t lane = 0; lane < std::min(kTileRows, raw.rows - tile * kTileRows); ++lane) {
    const uint8_t* row =
        reinterpret_cast<const uint8_t*>(raw.data) + (tile * kTileRows + lane) * row_bytes;
    if (IsQuantised(type)) {
      for (int64_t g = 0; g < raw.cols / kGroup; ++g) {
        const Group group =
            raw.type == type ? ReadGroup(type, row, g) : QuantiseGroup(raw.type, row, g, type);
        WriteGroup(view_, group, g, lane, to);
      }
    } else {
      WriteFloats(view_, row, lane, to);
    }
  }
}

}  // namespace setu::kernels
