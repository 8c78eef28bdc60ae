// SPDX-License-Identifier: Apache-2.0
// K and V of a block from one KV type into another, for a worker that takes them from a peer with
// another type. Each value is read exactly and rounded as if it had just been computed.
//
//   ConvertKv({.kv_heads = 8, .head_dim = 128, .block_tokens = 16}, KvType::kBF16, in,
//             KvType::kInt8, out);
//
// Any thread; nothing is kept. The bits are those of every ISA.
#ifndef SETU_KERNELS_CONVERT_KV_H_
#define SETU_KERNELS_CONVERT_KV_H_

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace setu::kernels {

// Of a block of one layer; what lies where says KvLayer in ops.h.
struct KvShape {
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t block_tokens = 0;
};

// `in` and `out` have 2 * kv_heads * KvHeadBytes of their types, and do not overlap. A value beyond
// the range of f16 becomes an infinity, as it does where f16 is stored.
void ConvertKv(const KvShape& shape, KvType from, const std::byte* in, KvType to, std::byte* out);

}  // namespace setu::kernels

#endif  // SETU_KERNELS_CONVERT_KV_H_
