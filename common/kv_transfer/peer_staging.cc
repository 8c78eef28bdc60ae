// SPDX-License-Identifier: Apache-2.0
#include "common/kv_transfer/peer_staging.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/descriptor.h"

namespace setu::kv_transfer {
namespace {

absl::Status Refused(const std::string& why) { return absl::FailedPreconditionError(why); }

// Seals end what could go wrong with a mapping: no byte of it can be taken away under a reader.
absl::Status IsWhatWasOffered(int fd, const std::string& path,
                              const worker::v1::SharedMemory& offer) {
  struct stat about = {};
  if (fstat(fd, &about) != 0) return Refused(absl::StrCat(path, ": ", std::strerror(errno)));
  if (!S_ISREG(about.st_mode) || static_cast<uint64_t>(about.st_size) != offer.bytes()) {
    return Refused(absl::StrCat(path, " is no memory of ", offer.bytes(), " bytes"));
  }
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    return Refused(absl::StrCat(path, " is not sealed against a change of its size"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string HostIdentity() {
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string identity;
  std::array<char, PATH_MAX> space;
  const ssize_t length = readlink("/proc/self/ns/pid", space.data(), space.size());
  if (!std::getline(boot, identity) || length < 0) return "";
  return absl::StrCat(identity, " ", std::string(space.data(), static_cast<size_t>(length)));
}

absl::StatusOr<PeerStaging> PeerStaging::Open(const worker::v1::SharedMemory& offer) {
  if (offer.host().empty() || offer.host() != HostIdentity()) {
    return Refused("the sender is on another host or in another PID namespace");
  }
  if (offer.nonce().size() != kNonceBytes) return Refused("the offer has no nonce");
  const std::string path = absl::StrCat("/proc/", offer.pid(), "/fd/", offer.fd());
  // Nothing waits, whatever stands there.
  rpc::Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) return Refused(absl::StrCat(path, ": ", std::strerror(errno)));
  SETU_RETURN_IF_ERROR(IsWhatWasOffered(fd.get(), path, offer));
  void* mapped = mmap(nullptr, offer.bytes(), PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) return Refused(absl::StrCat(path, ": ", std::strerror(errno)));
  PeerStaging memory({static_cast<const std::byte*>(mapped), offer.bytes()});
  if (offer.bytes() < kNonceBytes || std::memcmp(mapped, offer.nonce().data(), kNonceBytes) != 0) {
    return Refused(absl::StrCat(path, " is not what was offered"));
  }
  return memory;
}

PeerStaging::PeerStaging(std::span<const std::byte> memory)
    : memory_(memory.data(), Unmap{memory.size()}) {}

void PeerStaging::Unmap::operator()(const std::byte* memory) const {
  munmap(const_cast<std::byte*>(memory), bytes);
}

absl::StatusOr<std::span<const std::byte>> PeerStaging::Fetch(const worker::v1::Staged& staged) {
  const uint64_t bytes = memory_.get_deleter().bytes;
  if (staged.length() > kMostStagedBytes || staged.offset() > bytes ||
      staged.length() > bytes - staged.offset()) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame.staged is ", staged.length(), " bytes at ", staged.offset(),
                     ", must be inside ", bytes, " and at most ", kMostStagedBytes));
  }
  if (copy_.size() < staged.length()) copy_.resize(staged.length());
  std::copy_n(memory_.get() + staged.offset(), staged.length(), copy_.data());  // of 0 too
  return std::span(copy_).first(staged.length());
}

}  // namespace setu::kv_transfer
