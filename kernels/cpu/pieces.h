// SPDX-License-Identifier: Apache-2.0
// How the ops of cpu_ops.h are divided among threads.
//
//   ForEachRow(pool, out.rows, out.cols, [&](int64_t row, int thread) { ... });
#ifndef SETU_KERNELS_CPU_PIECES_H_
#define SETU_KERNELS_CPU_PIECES_H_

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "kernels/cpu/thread_pool.h"

namespace setu::kernels {

// About what a thread does in two microseconds: less is not worth a claim, by another thread or
// this one. Where multiplying takes the time it is four, as a product starts anew in each piece.
constexpr int64_t kPieceValues = 4096;       // of the ops on single rows
constexpr int64_t kPieceBytes = 48 << 10;    // of packed weights read
constexpr int64_t kPieceProducts = 1 << 20;  // multiplied and added

// How many pieces `units` of work make where one unit is `share` of a piece: as many for each
// thread, and not so many that claims count. A thread that is delayed leaves its pieces to others.
inline int64_t Pieces(int64_t units, double share, int threads) {
  const auto wanted = static_cast<int64_t>(static_cast<double>(units) * share);
  if (wanted < 1 || units < 2) return 1;
  const int64_t each = std::clamp<int64_t>(wanted / threads, 1, 8);
  return std::min(units, each * threads);
}

// body(row, thread) for every row, in pieces of a sensible size.
template <class Body>
void ForEachRow(ThreadPool& pool, int64_t rows, int64_t cols, const Body& body) {
  const double share = static_cast<double>(cols) / kPieceValues;
  const int64_t pieces = Pieces(rows, share, pool.threads());
  pool.ForEach(pieces, [&](int64_t i, int thread) {
    for (int64_t row = i * rows / pieces; row < (i + 1) * rows / pieces; ++row) body(row, thread);
  });
}

// Room for at least so many values; it never shrinks.
template <class Buffer>
void Grow(Buffer& buffer, int64_t least) {
  if (std::ssize(buffer) < least) buffer.resize(least);
}

}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_PIECES_H_
