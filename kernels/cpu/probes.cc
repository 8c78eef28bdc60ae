// SPDX-License-Identifier: Apache-2.0
// The probes of CpuOps, apart from the ops of the forward pass.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/packed_layout.h"
#include "kernels/cpu/packed_matrix.h"

namespace setu::kernels {
namespace {

// Bytes: long streams, small weights together, yet enough pieces to share.
constexpr int64_t kReadPiece = 256 << 10;

// Any bits will do for int8; the floats are those of [1, 2), half of them negative.
struct Operands {
  alignas(64) int8_t bytes[kProbeVectors * 64];
  alignas(64) float floats[kProbeVectors * 16];
};

Operands RandomOperands() {
  Operands operands;
  uint32_t state = 1;
  const auto next = [&state] { return state = state * 1664525 + 1013904223; };  // Numerical Recipes
  for (int8_t& byte : operands.bytes) byte = static_cast<int8_t>(next() >> 24);
  for (float& value : operands.floats) {
    const uint32_t bits = next();
    value = (bits >> 31 ? -1.0f : 1.0f) * (1.0f + static_cast<float>(bits & 0x7fffff) * 0x1p-23f);
  }
  return operands;
}

}  // namespace

uint32_t CpuOps::ProbeReads(std::span<const PackedMatrix* const> matrices) {
  std::vector<std::span<const uint8_t>> parts;
  std::vector<size_t> pieces = {0};  // where each begins among the parts, and the end
  int64_t piece_bytes = 0;
  for (const PackedMatrix* matrix : matrices) {
    const uint8_t* data = static_cast<const CpuMatrix*>(matrix)->view().tiles;
    const int64_t bytes = static_cast<int64_t>(matrix->bytes());
    for (int64_t at = 0; at < bytes; at += kReadPiece) {
      parts.emplace_back(data + at, static_cast<size_t>(std::min(kReadPiece, bytes - at)));
      piece_bytes += std::ssize(parts.back());
      if (piece_bytes < kReadPiece) continue;
      pieces.push_back(parts.size());
      piece_bytes = 0;
    }
  }
  if (piece_bytes > 0) pieces.push_back(parts.size());
  std::atomic<uint32_t> sum = 0;
  pool_.ForEach(std::ssize(pieces) - 1, [&](int64_t piece, int) {
    uint32_t own = 0;
    for (size_t i = pieces[piece]; i < pieces[piece + 1]; ++i) {
      own += kernels_.sum_words(parts[i].data(), std::ssize(parts[i]));
    }
    sum += own;
  });
  return sum;
}

int64_t CpuOps::ProbeProducts(const PackedMatrix& weights, int64_t rounds) {
  const WeightType type = weights.type();
  const bool int8 = path_ == NumericPath::kInt8G32 && IsQuantised(type);
  const auto probe_floats =
      path_ == NumericPath::kBf16Tile ? kernels_.probe_bf16 : kernels_.probe_f32;
  const Operands operands = RandomOperands();
  std::atomic<int64_t> products = 0;
  // More pieces than threads: one that wakes late leaves some of its own to the others.
  pool_.ForEach(int64_t{8} * threads(), [&](int64_t, int) {
    float sum = 0.0f;
    products += int8 ? kernels_.probe_int8(operands.bytes, rounds, &sum)
                     : probe_floats(operands.floats, rounds, &sum);
  });
  return products;
}

}  // namespace setu::kernels
