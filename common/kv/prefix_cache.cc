// SPDX-License-Identifier: Apache-2.0
#include "common/kv/prefix_cache.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"

namespace setu::kv {

PrefixCache::PrefixCache(BlockPool& pool, int32_t block_tokens, int32_t most)
    : pool_(pool),
      block_tokens_(block_tokens),
      most_(most),
      entries_(pool.total()),
      ids_(size_t(pool.total()) * block_tokens),
      buckets_(std::bit_ceil(static_cast<uint32_t>(std::max(pool.total(), 1))), kNone) {
  changes_.reserve(2 * size_t(pool.total()));
  taken_.reserve(2 * size_t(pool.total()));
  pool_.OnForget([this](BlockId block) { Forget(block); });
}

int32_t PrefixCache::KnownTokens(Place place, std::span<const int32_t> ids) const {
  const auto whole = static_cast<int32_t>(ids.size()) / block_tokens_;
  while (place.blocks < whole) {
    const std::span<const int32_t> block_ids = IdsOf(ids, place.blocks);
    const BlockHash hash = NextHash(place.hash, block_ids);
    const BlockId block = After(place, hash, block_ids);
    if (block == kNone) break;
    place = {hash, entries_[block].serial, place.blocks + 1};
  }
  return place.blocks * block_tokens_;
}

BlockLease PrefixCache::Find(Place& place, std::span<const int32_t> ids, int32_t max_blocks) {
  SETU_CHECK(place.blocks == 0, "what is known is looked for once, from the start");
  std::vector<BlockId> blocks;
  const int32_t whole = std::min(static_cast<int32_t>(ids.size()) / block_tokens_, max_blocks);
  while (place.blocks < whole) {
    const std::span<const int32_t> block_ids = IdsOf(ids, place.blocks);
    const BlockHash hash = NextHash(place.hash, block_ids);
    const BlockId block = After(place, hash, block_ids);
    if (block == kNone) break;
    blocks.push_back(block);
    place = {hash, entries_[block].serial, place.blocks + 1};
  }
  return pool_.Share(blocks);
}

void PrefixCache::Add(Place& place, std::span<const int32_t> ids, std::span<const BlockId> table) {
  const auto whole = static_cast<int32_t>(ids.size()) / block_tokens_;
  SETU_CHECK(whole <= static_cast<int32_t>(table.size()), "the table covers the ids");
  while (place.blocks < whole && known_ < most_) {
    const std::span<const int32_t> block_ids = IdsOf(ids, place.blocks);
    const BlockHash hash = NextHash(place.hash, block_ids);
    if (ByHash(hash) != kNone) return;
    const BlockId block = table[place.blocks];
    SETU_CHECK(entries_[block].serial == 0, "a block bears one name");
    BlockId& bucket = buckets_[hash & (buckets_.size() - 1)];
    entries_[block] = {++serials_, place.serial, hash, bucket};
    bucket = block;
    std::copy(block_ids.begin(), block_ids.end(), ids_.begin() + ptrdiff_t(block) * block_tokens_);
    pool_.Keep(block);
    ++known_;
    changes_.push_back({hash, true});
    place = {hash, serials_, place.blocks + 1};
  }
}

const std::vector<PrefixChange>& PrefixCache::TakeChanges() {
  taken_.clear();
  taken_.swap(changes_);
  return taken_;
}

BlockId PrefixCache::After(const Place& place, BlockHash hash, std::span<const int32_t> ids) const {
  const BlockId block = ByHash(hash);
  if (block == kNone || entries_[block].parent != place.serial) return kNone;
  const auto known = ids_.begin() + ptrdiff_t(block) * block_tokens_;
  return std::equal(ids.begin(), ids.end(), known) ? block : kNone;
}

BlockId PrefixCache::ByHash(BlockHash hash) const {
  BlockId block = buckets_[hash & (buckets_.size() - 1)];
  while (block != kNone && entries_[block].hash != hash) block = entries_[block].next;
  return block;
}

void PrefixCache::Forget(BlockId block) {
  Entry& entry = entries_[block];
  BlockId* link = &buckets_[entry.hash & (buckets_.size() - 1)];
  while (*link != block) link = &entries_[*link].next;
  *link = entry.next;
  changes_.push_back({entry.hash, false});
  entry = {};
  ++forgotten_;
  --known_;
}

}  // namespace setu::kv
