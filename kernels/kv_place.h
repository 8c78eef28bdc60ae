// SPDX-License-Identifier: Apache-2.0
// Where the values of one KV head lie in its K, or its V, of a block.
//
//          K                                         V
//   bf16   [block_tokens / 16][head_dim / 2][16][2]  [block_tokens / 2][head_dim][2]
//   others [head_dim][block_tokens]                  [block_tokens][head_dim]
//
// So attention reads a vector of keys as it lies; of bf16, the pairs that its products take: of K
// two dims of a key, of V a dim of two keys.
//
//   const KvPlace place = KeyPlace(type, head_dim, block_tokens, token);
//   values[IndexOf(place, dim)]
#ifndef SETU_KERNELS_KV_PLACE_H_
#define SETU_KERNELS_KV_PLACE_H_

#include "kernels/types.h"

namespace setu::kernels {

// Of internal linkage: kernels are compiled for several ISAs.
static constexpr int64_t IndexOf(KvPlace place, int64_t dim) {
  return place.first + dim / place.together * place.stride + dim % place.together;
}
static constexpr KvPlace KeyPlace(KvType type, int64_t head_dim, int64_t block_tokens,
                                  int64_t token) {
  if (type != KvType::kBF16) return {token, 1, block_tokens};
  return {token / 16 * 16 * (head_dim + head_dim % 2) + token % 16 * 2, 2, 32};
}
static constexpr KvPlace ValuePlace(KvType type, int64_t head_dim, int64_t token) {
  if (type != KvType::kBF16) return {token * head_dim, 1, 1};
  return {token / 2 * 2 * head_dim + token % 2, 1, 2};
}

}  // namespace setu::kernels

#endif  // SETU_KERNELS_KV_PLACE_H_
