// SPDX-License-Identifier: Apache-2.0
// How attention is cut into pieces. Key tiles are anchored at position 0 of the sequence, so
// that a row's sums never depend on chunks, prefix hits, windows or KV block size.
#ifndef SETU_KERNELS_CPU_ATTENTION_LAYOUT_H_
#define SETU_KERNELS_CPU_ATTENTION_LAYOUT_H_

#include <stdint.h>

namespace setu::kernels {
namespace {

constexpr int64_t kKeyTile = 32;  // part of the numeric path: another value gives other bits

// Queries of one piece, at most, unless one KV head has more of them: many share what is read of K
// and V, and their state stays in the caches of a core. Not part of the numeric path.
constexpr int64_t kPieceQueries = 64;

// As many queries or fewer of a piece read K and V where they lie; for more, a tile is expanded to
// floats once. Not part of the numeric path.
constexpr int64_t kInPlaceQueries = 8;

// Of one thread: a tile of K and of V as floats; per query q, its output, 16 partial sums, maximum.
constexpr int64_t AttentionScratchFloats(int64_t head_dim, int64_t group) {
  const int64_t dim = (head_dim + 15) / 16 * 16;
  const int64_t queries = group > kPieceQueries ? group : kPieceQueries;
  const int64_t whole_lines = (queries + 15) / 16 * 16;
  return 2 * kKeyTile * dim + queries * (2 * dim + 16) + whole_lines;
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_ATTENTION_LAYOUT_H_
