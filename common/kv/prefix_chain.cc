// SPDX-License-Identifier: Apache-2.0
#include "common/kv/prefix_chain.h"

namespace setu::kv {
namespace {

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA'14): its
// increment sets equal words at different places apart.
BlockHash Mix(BlockHash hash, uint64_t word) {
  uint64_t x = (hash + 0x9e3779b97f4a7c15u) ^ word;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

BlockHash RootHash(const PrefixScope& scope) {
  BlockHash hash = Mix(0, scope.model);
  hash = Mix(hash, scope.numerics.size());
  for (const char c : scope.numerics) hash = Mix(hash, static_cast<unsigned char>(c));
  hash = Mix(hash, static_cast<uint64_t>(scope.block_tokens));
  return Mix(hash, scope.salt);
}

BlockHash NextHash(BlockHash parent, std::span<const int32_t> ids) {
  BlockHash hash = parent;
  for (const int32_t id : ids) hash = Mix(hash, static_cast<uint32_t>(id));
  return hash;
}

std::vector<BlockHash> Chain(BlockHash root, std::span<const int32_t> ids, int32_t block_tokens) {
  std::vector<BlockHash> chain;
  chain.reserve(ids.size() / block_tokens);
  BlockHash hash = root;
  for (; ids.size() >= static_cast<size_t>(block_tokens); ids = ids.subspan(block_tokens)) {
    hash = NextHash(hash, ids.first(block_tokens));
    chain.push_back(hash);
  }
  return chain;
}

}  // namespace setu::kv
