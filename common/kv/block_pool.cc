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

void BlockLease::Release() {
  if (!blocks_.empty()) pool_->Release(blocks_);
  blocks_.clear();
}

BlockPool::BlockPool(int32_t blocks) : references_(blocks, 0), free_(blocks) {
  std::iota(free_.rbegin(), free_.rend(), 0);  // block 0 is on top
}

BlockPool::~BlockPool() { SETU_CHECK(held() == 0, "every lease comes back before its pool goes"); }

std::optional<BlockLease> BlockPool::Take(int32_t count) {
  SETU_CHECK(count >= 0, "a count of blocks is not negative");
  if (count > free()) return std::nullopt;
  std::vector<BlockId> taken(free_.rbegin(), free_.rbegin() + count);
  free_.resize(free_.size() - count);
  for (BlockId block : taken) references_[block] = 1;
  return BlockLease(this, std::move(taken));
}

BlockLease BlockPool::Share(std::span<const BlockId> blocks) {
  for (BlockId block : blocks) {
    SETU_CHECK(block >= 0 && block < total() && references_[block] > 0,
               "only held blocks are shared");
    ++references_[block];
  }
  return BlockLease(this, {blocks.begin(), blocks.end()});
}

void BlockPool::Release(std::span<const BlockId> blocks) {
  for (BlockId block : blocks) {
    SETU_CHECK(references_[block] > 0, "a block is given back as often as it was held");
    if (--references_[block] == 0) free_.push_back(block);
  }
}

}  // namespace setu::kv
