// SPDX-License-Identifier: Apache-2.0
// Ids and reference counts of KV blocks; the bytes are KvStorage's. One thread owns a pool.
//
//   BlockPool pool(1024);
//   auto lease = pool.Take(4);          // nullopt: not enough free blocks
//   BlockLease shared = pool.Share(lease->blocks().first(2));
//   // Both free themselves; a block is free again when its last lease is gone.
//   pool.Keep(lease->blocks().front());   // once free, it is taken after all others
#ifndef SETU_COMMON_KV_BLOCK_POOL_H_
#define SETU_COMMON_KV_BLOCK_POOL_H_

#include <cstdint>
#include <functional>
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
  // The blocks from index `first` on go over to a lease of their own.
  BlockLease Split(int32_t first);
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

  // Free blocks with bytes worth nothing first, then kept ones, the longest unused first.
  std::optional<BlockLease> Take(int32_t count);
  // A further reference to blocks that are held or kept.
  BlockLease Share(std::span<const BlockId> blocks);
  // The bytes of a held block stay of use when nobody holds it, until Take needs it.
  void Keep(BlockId block);
  // Called with each kept block that Take gives to somebody else, before it does.
  void OnForget(std::function<void(BlockId)> forget) { forget_ = std::move(forget); }

  int32_t total() const { return static_cast<int32_t>(blocks_.size()); }
  int32_t free() const { return static_cast<int32_t>(free_.size()) + cached_; }
  int32_t held() const { return total() - free(); }
  int32_t cached() const { return cached_; }  // free, with bytes of use
  int32_t references(BlockId block) const { return blocks_[block].references; }

 private:
  friend class BlockLease;
  struct Block {
    int32_t references = 0;
    bool kept = false;
    BlockId older = kNone, newer = kNone;  // in the list of kept blocks that nobody holds
  };
  static constexpr BlockId kNone = -1;

  void Release(std::span<const BlockId> blocks);
  void EnterCache(BlockId block);
  void LeaveCache(BlockId block);

  std::vector<Block> blocks_;  // [total]
  std::vector<BlockId> free_;  // a stack: the block freed last is the warmest
  BlockId oldest_ = kNone, newest_ = kNone;
  int32_t cached_ = 0;
  std::function<void(BlockId)> forget_;
};

// Blocks that `tokens` tokens need.
constexpr int32_t BlocksFor(int64_t tokens, int32_t block_tokens) {
  return static_cast<int32_t>((tokens + block_tokens - 1) / block_tokens);
}

}  // namespace setu::kv

#endif  // SETU_COMMON_KV_BLOCK_POOL_H_
