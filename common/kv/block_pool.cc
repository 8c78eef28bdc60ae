// SPDX-License-Identifier: Apache-2.0
#include "common/kv/block_pool.h"

#include <numeric>
#include <utility>

#include "common/base/check.h"

namespace setu::kv {

BlockLease::BlockLease(BlockPool* pool, std::vector<BlockId> blocks)
    : pool_(pool), blocks_(std::move(blocks)) {}

BlockLease::BlockLease(BlockLease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), blocks_(std::exchange(other.blocks_, {})) {}

BlockLease& BlockLease::operator=(BlockLease&& other) noexcept {
  if (this == &other) return *this;
  Release();
  pool_ = std::exchange(other.pool_, nullptr);
  blocks_ = std::exchange(other.blocks_, {});
  return *this;
}

BlockLease::~BlockLease() { Release(); }

void BlockLease::Append(BlockLease other) {
  if (other.blocks_.empty()) return;
  SETU_CHECK(blocks_.empty() || pool_ == other.pool_, "a lease holds blocks of one pool");
  pool_ = other.pool_;
  blocks_.insert(blocks_.end(), other.blocks_.begin(), other.blocks_.end());
  other.blocks_.clear();
}

BlockLease BlockLease::Split(int32_t first) {
  std::vector<BlockId> rest(blocks_.begin() + first, blocks_.end());
  blocks_.resize(first);
  return BlockLease(pool_, std::move(rest));
}

void BlockLease::Release() {
  if (!blocks_.empty()) pool_->Release(blocks_);
  blocks_.clear();
}

BlockPool::BlockPool(int32_t blocks) : blocks_(blocks), free_(blocks) {
  std::iota(free_.rbegin(), free_.rend(), 0);  // block 0 is on top
}

BlockPool::~BlockPool() { SETU_CHECK(held() == 0, "every lease comes back before its pool goes"); }

std::optional<BlockLease> BlockPool::Take(int32_t count) {
  SETU_CHECK(count >= 0, "a count of blocks is not negative");
  if (count > free()) return std::nullopt;
  std::vector<BlockId> taken;
  taken.reserve(count);
  while (static_cast<int32_t>(taken.size()) < count) {
    if (!free_.empty()) {
      taken.push_back(free_.back());
      free_.pop_back();
    } else {
      const BlockId block = oldest_;
      LeaveCache(block);
      blocks_[block].kept = false;
      if (forget_) forget_(block);
      taken.push_back(block);
    }
    blocks_[taken.back()].references = 1;
  }
  return BlockLease(this, std::move(taken));
}

BlockLease BlockPool::Share(std::span<const BlockId> blocks) {
  for (BlockId id : blocks) {
    SETU_CHECK(id >= 0 && id < total(), "a block is one of the pool");
    Block& block = blocks_[id];
    SETU_CHECK(block.references > 0 || block.kept, "only held and kept blocks are shared");
    if (block.references == 0) LeaveCache(id);
    ++block.references;
  }
  return BlockLease(this, {blocks.begin(), blocks.end()});
}

void BlockPool::Keep(BlockId block) {
  SETU_CHECK(blocks_[block].references > 0, "whoever has a block kept holds it");
  blocks_[block].kept = true;
}

// The end of a sequence first: of kept blocks it is the first that others may take, so that what
// follows on a block is never kept longer than the block.
void BlockPool::Release(std::span<const BlockId> blocks) {
  for (auto id = blocks.rbegin(); id != blocks.rend(); ++id) {
    Block& block = blocks_[*id];
    SETU_CHECK(block.references > 0, "a block is given back as often as it was held");
    if (--block.references > 0) continue;
    if (block.kept) {
      EnterCache(*id);
    } else {
      free_.push_back(*id);
    }
  }
}

void BlockPool::EnterCache(BlockId id) {
  blocks_[id].older = newest_;
  blocks_[id].newer = kNone;
  (newest_ == kNone ? oldest_ : blocks_[newest_].newer) = id;
  newest_ = id;
  ++cached_;
}

void BlockPool::LeaveCache(BlockId id) {
  const Block& block = blocks_[id];
  (block.older == kNone ? oldest_ : blocks_[block.older].newer) = block.newer;
  (block.newer == kNone ? newest_ : blocks_[block.newer].older) = block.older;
  --cached_;
}

}  // namespace setu::kv
