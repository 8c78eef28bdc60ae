// SPDX-License-Identifier: Apache-2.0
// Ids and reference counts of KV blocks; the bytes are KvStorage's. One thread owns a pool.
//
//   BlockPool pool(1024);
//   auto lease = pool.Take(4);          // nullopt: not enough free blocks
//   BlockLease shared = pool.Share(lease->blocks().first(2));
//   // Both free themselves; a block is free again when its last lease is gone.
#ifndef SETU_COMMON_KV_BLOCK_POOL_H_
#define SETU_COMMON_KV_BLOCK_POOL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace setu::kv {

using BlockId = int32_t;

class BlockPool;

// Blocks held by one owner; gives them back when it dies. The pool must outlive it.
class BlockLease {
 public:
  BlockLease() = default;
  BlockLease(BlockLease&& other) noexcept;
  BlockLease& operator=(BlockLease&& other) noexcept;
  BlockLease(const BlockLease&) = delete;
  BlockLease& operator=(const BlockLease&) = delete;
  ~BlockLease();

  std::span<const BlockId> blocks() const { return blocks_; }
  int32_t size() const { return static_cast<int32_t>(blocks_.size()); }
  // Moves the other lease's blocks behind these. Both of one pool.
  void Append(BlockLease other);
  void Release();

 private:
  friend class BlockPool;
  BlockLease(BlockPool* pool, std::vector<BlockId> blocks);
  BlockPool* pool_ = nullptr;
  std::vector<BlockId> blocks_;
};

class BlockPool {
 public:
  // Ids 0 .. blocks - 1, all free.
  explicit BlockPool(int32_t blocks);
  ~BlockPool();  // CHECK: every lease has come back

  std::optional<BlockLease> Take(int32_t count);
  // A further reference to blocks that are held.
  BlockLease Share(std::span<const BlockId> blocks);

  int32_t total() const { return static_cast<int32_t>(references_.size()); }
  int32_t free() const { return static_cast<int32_t>(free_.size()); }
  int32_t held() const { return total() - free(); }
  int32_t references(BlockId block) const { return references_[block]; }

 private:
  friend class BlockLease;
  void Release(std::span<const BlockId> blocks);
  std::vector<int32_t> references_;  // [total]
  std::vector<BlockId> free_;        // a stack: the block freed last is the warmest
};

// Blocks that `tokens` tokens need.
constexpr int32_t BlocksFor(int64_t tokens, int32_t block_tokens) {
  return static_cast<int32_t>((tokens + block_tokens - 1) / block_tokens);
}

}  // namespace setu::kv

#endif  // SETU_COMMON_KV_BLOCK_POOL_H_
