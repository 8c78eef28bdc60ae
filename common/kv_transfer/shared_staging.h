// SPDX-License-Identifier: Apache-2.0
// Memory in which a sender lays out frames for receivers on its host: a memfd cut into slots, which
// they open by its number and only read (peer_staging.h).
//
//   SETU_ASSIGN_OR_RETURN(auto staging, SharedStaging::Create(32 << 20, slot_bytes));
//   *manifest.mutable_memory() = staging->offer();
//   if (std::optional<SharedStaging::Slot> slot = staging->Take()) ...slot->bytes()...
//
// A slot that comes back while a receiver still reads it may get another frame: the receiver sees
// that by the checksum of what it has read. Safe for threads.
#ifndef SETU_COMMON_KV_TRANSFER_SHARED_STAGING_H_
#define SETU_COMMON_KV_TRANSFER_SHARED_STAGING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/descriptor.h"
#include "setu/worker/v1/kv_transfer.pb.h"

namespace setu::kv_transfer {

class SharedStaging {
 public:
  // One slot, until it is destroyed.
  class Slot {
   public:
    Slot(Slot&& other) noexcept;
    Slot& operator=(Slot&&) = delete;
    ~Slot();
    std::span<std::byte> bytes() const { return bytes_; }
    uint64_t offset() const { return offset_; }  // in the memory offered

   private:
    friend class SharedStaging;
    Slot(SharedStaging& staging, size_t number);
    SharedStaging* staging_;  // null: moved from
    size_t number_;
    std::span<std::byte> bytes_;
    uint64_t offset_;
  };

  // As many slots as `bytes` hold; pages are taken when written. Of 0 bytes none, null.
  // INVALID_ARGUMENT where they hold no slot, RESOURCE_EXHAUSTED where the system gives no such
  // memory; both name --kv-shm.
  static absl::StatusOr<std::unique_ptr<SharedStaging>> Create(size_t bytes, size_t slot_bytes);
  // Every slot must have come back.
  ~SharedStaging();
  SharedStaging(const SharedStaging&) = delete;
  SharedStaging& operator=(const SharedStaging&) = delete;

  const worker::v1::SharedMemory& offer() const { return offer_; }
  // nullopt: all are out.
  std::optional<Slot> Take();
  size_t free() const;

 private:
  SharedStaging(rpc::Descriptor fd, std::span<std::byte> memory, size_t slots, size_t slot_bytes);

  const rpc::Descriptor fd_;
  const std::span<std::byte> memory_;
  const size_t slot_bytes_;
  worker::v1::SharedMemory offer_;
  mutable std::mutex mutex_;
  std::vector<size_t> free_;  // the last one came back last: it is in the caches
};

}  // namespace setu::kv_transfer

#endif  // SETU_COMMON_KV_TRANSFER_SHARED_STAGING_H_
