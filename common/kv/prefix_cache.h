// SPDX-License-Identifier: Apache-2.0
// Which blocks of a pool hold the KV of which prefix. What was computed once and is still in a
// block, held or not, is found by its ids; a block that Take gives to somebody else is forgotten.
//
//   PrefixCache cache(pool, /*block_tokens=*/16);
//   PrefixCache::Place place = cache.Begin(root);
//   kv::BlockLease table = cache.Find(place, ids, max_blocks);   // the longest known prefix
//   ...take the other blocks, compute...
//   cache.Add(place, ids.first(computed), table.blocks());       // now they are known too
//
// What follows on a block is added by its holders alone, so it is forgotten before that block is.
// One thread owns it, with its pool. No call but the constructor allocates, Find's lease apart.
#ifndef SETU_COMMON_KV_PREFIX_CACHE_H_
#define SETU_COMMON_KV_PREFIX_CACHE_H_

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "common/kv/block_pool.h"
#include "common/kv/prefix_chain.h"

namespace setu::kv {

// A block that became known, or was forgotten.
struct PrefixChange {
  BlockHash hash = 0;
  bool known = false;
};

class PrefixCache {
 public:
  // How far along its ids a sequence is known.
  struct Place {
    BlockHash hash = 0;   // of the last known block, or the root
    uint64_t serial = 0;  // the block that bears it, as known then; the root's is its hash
    int32_t blocks = 0;
  };

  // Knows `most` blocks at a time at most. The pool must outlive it.
  PrefixCache(BlockPool& pool, int32_t block_tokens, int32_t most);
  ~PrefixCache() { pool_.OnForget(nullptr); }

  static Place Begin(BlockHash root) { return {.hash = root, .serial = root}; }
  // Behind it nothing becomes known.
  static Place Nowhere() { return {.blocks = std::numeric_limits<int32_t>::max()}; }
  // Tokens of whole known blocks from a new `place` on.
  int32_t KnownTokens(Place place, std::span<const int32_t> ids) const;
  // Holds the known blocks, `max_blocks` at most, and moves a new `place` behind them.
  BlockLease Find(Place& place, std::span<const int32_t> ids, int32_t max_blocks);
  // `table` holds the KV of `ids`: its whole blocks behind `place` become known. Ends at the first
  // one whose ids another block is known for: that one stays, and nothing is added behind it.
  void Add(Place& place, std::span<const int32_t> ids, std::span<const BlockId> table);

  // Grows with each change. Between equal versions, what is known is equal.
  uint64_t version() const { return serials_ + forgotten_; }
  int32_t known() const { return known_; }
  // The changes since the last call, in order, handed over: at most two for each block of the pool
  // and step, if asked for after each step.
  const std::vector<PrefixChange>& TakeChanges();

 private:
  static constexpr BlockId kNone = -1;
  struct Entry {          // of a block of the pool
    uint64_t serial = 0;  // never used twice; 0: not known
    uint64_t parent = 0;  // serial of the block before it
    BlockHash hash = 0;
    BlockId next = kNone;  // in its bucket
  };

  // The block known for the ids after `place`; kNone where there is none.
  BlockId After(const Place& place, BlockHash hash, std::span<const int32_t> ids) const;
  BlockId ByHash(BlockHash hash) const;
  std::span<const int32_t> IdsOf(std::span<const int32_t> ids, int32_t block) const {
    return ids.subspan(size_t(block) * block_tokens_, block_tokens_);
  }
  void Forget(BlockId block);

  BlockPool& pool_;
  const int32_t block_tokens_;
  const int32_t most_;
  std::vector<Entry> entries_;    // [pool]
  std::vector<int32_t> ids_;      // [pool, block_tokens]
  std::vector<BlockId> buckets_;  // a power of two of them, by the low bits of the hash
  uint64_t serials_ = 0;
  uint64_t forgotten_ = 0;
  int32_t known_ = 0;
  std::vector<PrefixChange> changes_, taken_;
};

}  // namespace setu::kv

#endif  // SETU_COMMON_KV_PREFIX_CACHE_H_
