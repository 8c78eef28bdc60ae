// SPDX-License-Identifier: Apache-2.0
// The bytes of all KV blocks: [layer][block], then of each kv_head K and of each V, as
// kernels/ops.h has them at KvLayer. A block of one layer is one contiguous piece (what a transfer
// frame carries). Attention reads one layer at a time: blocks that follow each other in a sequence,
// and in the pool, are read as one stream.
//
//   auto storage = KvStorage::Create(layout, /*blocks=*/1024);   // zero; pages taken when written
//   std::span<std::byte> piece = (*storage)->Piece(block, layer);
//
// Threads: bytes of a block are written by whoever holds its lease. Storage itself never changes.
#ifndef SETU_COMMON_KV_KV_STORAGE_H_
#define SETU_COMMON_KV_KV_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/kv/block_pool.h"
#include "kernels/ops.h"

namespace setu::kv {

// Equal on both sides of a transfer, else the handshake refuses.
struct KvLayout {
  int32_t block_tokens = 16;
  int32_t layers = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  kernels::KvType type = kernels::KvType::kF16;

  size_t piece_bytes() const {  // one block, one layer
    return size_t{2} * kv_heads * kernels::KvHeadBytes(type, head_dim, block_tokens);
  }
  size_t block_bytes() const { return piece_bytes() * layers; }
  bool operator==(const KvLayout&) const = default;
};

// Zeroes the slots of a piece from token `used` on.
void ClearSlots(const KvLayout& layout, int32_t used, std::span<std::byte> piece);

class KvStorage {
 public:
  // RESOURCE_EXHAUSTED where the system gives no such memory; names bytes and --kv-memory.
  static absl::StatusOr<std::unique_ptr<KvStorage>> Create(const KvLayout& layout, int32_t blocks);
  ~KvStorage();
  KvStorage(const KvStorage&) = delete;
  KvStorage& operator=(const KvStorage&) = delete;

  const KvLayout& layout() const { return layout_; }
  int32_t blocks() const { return blocks_; }
  std::span<std::byte> Piece(BlockId block, int32_t layer);
  std::span<const std::byte> Piece(BlockId block, int32_t layer) const;
  kernels::KvLayer Layer(int32_t layer);
  // Bytes of all layers, for a fork that goes on in a block of its own.
  void CopyBlock(BlockId from, BlockId to);

 private:
  KvStorage(const KvLayout& layout, int32_t blocks, std::byte* data);
  KvLayout layout_;
  int32_t blocks_;
  std::byte* data_;  // page-aligned, blocks * block_bytes
};

}  // namespace setu::kv

#endif  // SETU_COMMON_KV_KV_STORAGE_H_
