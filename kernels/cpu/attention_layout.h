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

// The same of bf16-tile, with K and V in bf16 or int8. A tile of keys is expanded to pairs of
// bfloat16s once per KV head of a piece, so a piece has more queries, sixteen to a tile.
constexpr int64_t kPairKeyTile = 64;        // part of the numeric path
constexpr int64_t kPairPieceQueries = 256;  // not part of it

// Queries of one KV head with what fills their last tile; fewer than sixteen make a lower tile.
constexpr int64_t PaddedQueries(int64_t queries) {
  return queries < 16 ? queries : (queries + 15) / 16 * 16;
}

// Of one thread: a tile of K and one of V; twice the scores and the weights of a tile of queries;
// per query q, its output, 16 partial sums, shift.
constexpr int64_t PairAttentionScratchFloats(int64_t head_dim, int64_t group) {
  const int64_t dim = (head_dim + 31) / 32 * 32;
  const int64_t padded = PaddedQueries(group);
  const int64_t queries = padded > kPairPieceQueries ? padded : kPairPieceQueries;
  const int64_t whole_lines = (queries + 15) / 16 * 16;
  return kPairKeyTile * (dim + 2 * 16 + 2 * 8) + queries * (dim / 2 + dim + 16) + whole_lines;
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_ATTENTION_LAYOUT_H_
