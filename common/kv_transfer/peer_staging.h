// SPDX-License-Identifier: Apache-2.0
// Memory that a sender on this host has offered (shared_staging.h), as its receiver reads it.
//
//   SETU_ASSIGN_OR_RETURN(PeerStaging memory, PeerStaging::Open(manifest.memory()));
//   SETU_ASSIGN_OR_RETURN(std::span<const std::byte> bytes, memory.Fetch(frame.staged()));
#ifndef SETU_COMMON_KV_TRANSFER_PEER_STAGING_H_
#define SETU_COMMON_KV_TRANSFER_PEER_STAGING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "setu/worker/v1/kv_transfer.pb.h"

namespace setu::kv_transfer {

inline constexpr size_t kNonceBytes = 16;
inline constexpr uint64_t kMostStagedBytes = 64 << 20;  // of one frame

// Equal in two processes where the number of a process means the same to both: one boot, one PID
// namespace. Empty where the system does not say.
std::string HostIdentity();

class PeerStaging {
 public:
  // FAILED_PRECONDITION says why the offer cannot be taken: another host, a process that must not
  // be looked into, something else than was offered.
  static absl::StatusOr<PeerStaging> Open(const worker::v1::SharedMemory& offer);

  // A copy, until the next call: what its owner writes there meanwhile changes nothing in it, so
  // that its checksum says what will be used. INVALID_ARGUMENT: outside the memory, or longer than
  // the message of a frame may be.
  absl::StatusOr<std::span<const std::byte>> Fetch(const worker::v1::Staged& staged);

 private:
  struct Unmap {
    size_t bytes;
    void operator()(const std::byte* memory) const;
  };
  explicit PeerStaging(std::span<const std::byte> memory);

  std::unique_ptr<const std::byte, Unmap> memory_;  // mapped, to be read alone
  std::vector<std::byte> copy_;                     // as large as the largest so far
};

}  // namespace setu::kv_transfer

#endif  // SETU_COMMON_KV_TRANSFER_PEER_STAGING_H_
