// SPDX-License-Identifier: Apache-2.0
#include "common/kv_transfer/shared_staging.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/kv_transfer/peer_staging.h"

namespace setu::kv_transfer {
namespace {

constexpr size_t kHead = 4096;  // a page for the nonce, so that slots begin on one

std::string RandomNonce() {
  std::random_device random;
  std::string nonce;
  while (nonce.size() < kNonceBytes) {
    const uint32_t word = random();
    nonce.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  return nonce;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedStaging>> SharedStaging::Create(size_t bytes,
                                                                     size_t slot_bytes) {
  if (bytes == 0) return nullptr;
  const size_t slots = bytes / slot_bytes;
  if (slots == 0) {
    return absl::InvalidArgumentError(absl::StrCat("--kv-shm is ", bytes,
                                                   " bytes; it must hold a frame of ", slot_bytes,
                                                   " bytes, or be 0: no shared memory"));
  }
  const auto refused = [bytes](const char* what) {
    return absl::ResourceExhaustedError(absl::StrCat("no shared memory of ", bytes, " bytes (",
                                                     what, ": ", std::strerror(errno),
                                                     "); lower --kv-shm"));
  };
  const size_t size = kHead + slots * slot_bytes;
  rpc::Descriptor fd(memfd_create("setu-kv", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.get() < 0) return refused("memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return refused("ftruncate");
  // What is offered stays as large as it was offered.
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return refused("F_ADD_SEALS");
  }
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return refused("mmap");
  return std::unique_ptr<SharedStaging>(
      new SharedStaging(std::move(fd), {static_cast<std::byte*>(data), size}, slots, slot_bytes));
}

SharedStaging::SharedStaging(rpc::Descriptor fd, std::span<std::byte> memory, size_t slots,
                             size_t slot_bytes)
    : fd_(std::move(fd)), memory_(memory), slot_bytes_(slot_bytes) {
  offer_.set_host(HostIdentity());
  offer_.set_pid(static_cast<uint32_t>(getpid()));
  offer_.set_fd(static_cast<uint32_t>(fd_.get()));
  offer_.set_bytes(memory.size());
  offer_.set_nonce(RandomNonce());
  std::ranges::copy(std::as_bytes(std::span(offer_.nonce())), memory_.begin());
  for (size_t slot = slots; slot > 0; --slot) free_.push_back(slot - 1);
}

SharedStaging::~SharedStaging() { munmap(memory_.data(), memory_.size()); }

std::optional<SharedStaging::Slot> SharedStaging::Take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) return std::nullopt;
  const size_t number = free_.back();
  free_.pop_back();
  return Slot(*this, number);
}

size_t SharedStaging::free() const {
  std::lock_guard lock(mutex_);
  return free_.size();
}

SharedStaging::Slot::Slot(SharedStaging& staging, size_t number)
    : staging_(&staging),
      number_(number),
      bytes_(staging.memory_.subspan(kHead + number * staging.slot_bytes_, staging.slot_bytes_)),
      offset_(kHead + number * staging.slot_bytes_) {}

SharedStaging::Slot::Slot(Slot&& other) noexcept
    : staging_(std::exchange(other.staging_, nullptr)),
      number_(other.number_),
      bytes_(other.bytes_),
      offset_(other.offset_) {}

SharedStaging::Slot::~Slot() {
  if (staging_ == nullptr) return;
  std::lock_guard lock(staging_->mutex_);
  staging_->free_.push_back(number_);
}

}  // namespace setu::kv_transfer
