// SPDX-License-Identifier: Apache-2.0
// Names for the blocks of a prompt: a block's hash covers its own ids and, through its parent's
// hash, all before it and all that decides their KV. Router and workers compute the same ones.
//
//   const BlockHash root = RootHash({.model = 7, .numerics = "int8-g32/kv-f16/r1", .salt = salt});
//   const std::vector<BlockHash> chain = Chain(root, ids, 16);   // one for each whole block
//
// A hash finds, it does not prove: PrefixCache compares the ids on a hit.
#ifndef SETU_COMMON_KV_PREFIX_CHAIN_H_
#define SETU_COMMON_KV_PREFIX_CHAIN_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace setu::kv {

using BlockHash = uint64_t;

// What, beside the ids, decides the bytes of a block and who may see that it is there.
struct PrefixScope {
  uint64_t model = 0;         // digest of the weights
  std::string_view numerics;  // the numeric path, with the type of the KV
  int32_t block_tokens = 16;
  uint64_t salt = 0;  // of the tenant; a secret's digest, so that nobody finds another one's blocks
};

BlockHash RootHash(const PrefixScope& scope);
// ids: [block_tokens]
BlockHash NextHash(BlockHash parent, std::span<const int32_t> ids);
// Of ids' whole blocks, in order: [ids.size() / block_tokens]
std::vector<BlockHash> Chain(BlockHash root, std::span<const int32_t> ids, int32_t block_tokens);

}  // namespace setu::kv

#endif  // SETU_COMMON_KV_PREFIX_CHAIN_H_
