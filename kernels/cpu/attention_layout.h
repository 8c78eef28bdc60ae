// SPDX-License-Identifier: Apache-2.0
// How attention is cut into pieces. Key tiles are anchored at position 0 of the sequence, so
// that a row's sums never depend on chunks, prefix hits, windows or KV block size.
#ifndef SETU_KERNELS_CPU_ATTENTION_LAYOUT_H_
#define SETU_KERNELS_CPU_ATTENTION_LAYOUT_H_

#include <stdint.h>

namespace setu::kernels {
namespace {

constexpr int64_t kKeyTile = 32;  // part of the numeric path: another value gives other bits

// Query rows of one piece: together with the `group` heads of a KV head about 64 queries share what
// is read of K and V. Not part of the numeric path.
constexpr int64_t AttentionRows(int64_t group) { return group >= 64 ? 1 : 64 / group; }

// As many queries or fewer of a piece read K and V where they lie; for more, a tile is expanded to
// floats once. Not part of the numeric path.
constexpr int64_t kInPlaceQueries = 8;

// Of one thread: a tile of K and of V as floats; per query q, its output, 16 partial sums, maximum.
constexpr int64_t AttentionScratchFloats(int64_t head_dim, int64_t group) {
  const int64_t dim = (head_dim + 15) / 16 * 16;
  return 2 * kKeyTile * dim + AttentionRows(group) * group * (2 * dim + 16 + 1);
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_ATTENTION_LAYOUT_H_
