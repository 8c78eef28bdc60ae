// SPDX-License-Identifier: Apache-2.0
#include "common/kv/kv_storage.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "kernels/device.h"
#include "kernels/kv_place.h"
#include "kernels/numa.h"

namespace setu::kv {

absl::StatusOr<std::unique_ptr<KvStorage>> KvStorage::Create(const KvLayout& layout,
                                                             int32_t blocks) {
  SETU_CHECK(layout.block_bytes() > 0 && blocks > 0, "a pool has blocks, and they have bytes");
  size_t bytes = 0;
  if (__builtin_mul_overflow(layout.block_bytes(), static_cast<size_t>(blocks), &bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("KV pool of ", blocks, " blocks of ", layout.block_bytes(),
                     " bytes is beyond the address space; lower --kv-memory"));
  }
  // Anonymous pages are zero and taken when first written, so an unused pool costs nothing.
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a KV pool of ", bytes,
                                                     " bytes (", std::strerror(errno),
                                                     "); lower --kv-memory"));
  }
  madvise(data, bytes, MADV_HUGEPAGE);  // a refusal costs speed alone
  kernels::Spread({static_cast<std::byte*>(data), bytes},
                  kernels::NodesOf(kernels::AvailableCpus()));
  return std::unique_ptr<KvStorage>(new KvStorage(layout, blocks, static_cast<std::byte*>(data)));
}

KvStorage::KvStorage(const KvLayout& layout, int32_t blocks, std::byte* data)
    : layout_(layout), blocks_(blocks), data_(data) {}

KvStorage::~KvStorage() { munmap(data_, layout_.block_bytes() * blocks_); }

std::span<const std::byte> KvStorage::Piece(BlockId block, int32_t layer) const {
  SETU_CHECK(block >= 0 && block < blocks_ && layer >= 0 && layer < layout_.layers,
             "a piece is inside the pool");
  return {data_ + (int64_t{layer} * blocks_ + block) * layout_.piece_bytes(),
          layout_.piece_bytes()};
}

std::span<std::byte> KvStorage::Piece(BlockId block, int32_t layer) {
  const std::span<const std::byte> piece = std::as_const(*this).Piece(block, layer);
  return {const_cast<std::byte*>(piece.data()), piece.size()};
}

kernels::KvLayer KvStorage::Layer(int32_t layer) {
  return {.base = Piece(0, layer).data(),
          .block_stride = layout_.piece_bytes(),
          .type = layout_.type,
          .kv_heads = layout_.kv_heads,
          .head_dim = layout_.head_dim,
          .block_tokens = layout_.block_tokens};
}

void KvStorage::CopyBlock(BlockId from, BlockId to) {
  SETU_CHECK(from != to, "a fork goes on in a block of its own");
  for (int32_t layer = 0; layer < layout_.layers; ++layer) {
    std::ranges::copy(Piece(from, layer), Piece(to, layer).data());
  }
}

namespace {

// Of one head, the slots from `used` on: of K, a dim's keys that lie together at a time.
void ClearKeys(const KvLayout& layout, int32_t used, std::byte* head) {
  const size_t value = kernels::KvTypeBytes(layout.type);
  const int32_t together = layout.type == kernels::KvType::kBF16 ? 16 : layout.block_tokens;
  while (used < layout.block_tokens) {
    const kernels::KvPlace place =
        kernels::KeyPlace(layout.type, layout.head_dim, layout.block_tokens, used);
    const int32_t end = (used / together + 1) * together;
    for (int32_t dim = 0; dim < layout.head_dim; dim += place.together) {
      std::memset(head + kernels::IndexOf(place, dim) * value, 0,
                  (end - used) * place.together * value);
    }
    used = end;
  }
}

void ClearValues(const KvLayout& layout, int32_t used, std::byte* head) {
  const size_t value = kernels::KvTypeBytes(layout.type);
  const kernels::KvPlace place = kernels::ValuePlace(layout.type, layout.head_dim, used);
  if (place.stride > 1 && used % place.stride != 0) {  // the other key of the pair stays
    for (int32_t dim = 0; dim < layout.head_dim; ++dim) {
      std::memset(head + kernels::IndexOf(place, dim) * value, 0, value);
    }
    ++used;
  }
  std::memset(head + used * layout.head_dim * value, 0,
              (layout.block_tokens - used) * layout.head_dim * value);
}

}  // namespace

void ClearSlots(const KvLayout& layout, int32_t used, std::span<std::byte> piece) {
  SETU_CHECK(used >= 0 && used <= layout.block_tokens && piece.size() == layout.piece_bytes(),
             "slots of one block of one layer");
  const size_t value = kernels::KvTypeBytes(layout.type);
  const size_t head = piece.size() / 2 / layout.kv_heads;
  for (int32_t part = 0; part < 2 * layout.kv_heads; ++part) {
    std::byte* bytes = piece.data() + part * head;
    part < layout.kv_heads ? ClearKeys(layout, used, bytes) : ClearValues(layout, used, bytes);
    if (layout.type != kernels::KvType::kInt8) continue;
    std::ranges::fill(
        piece.subspan(part * head, head)
            .subspan(value * layout.head_dim * layout.block_tokens + used * sizeof(float)),
        std::byte{0});
  }
}

}  // namespace setu::kv
