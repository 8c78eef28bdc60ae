// SPDX-License-Identifier: Apache-2.0
#include "common/kv_transfer/peer_staging.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "common/kv_transfer/shared_staging.h"
#include "tests/support/held_memory.h"
#include "tests/support/temp_dir.h"

namespace setu::kv_transfer {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using worker::v1::SharedMemory;
using worker::v1::Staged;

constexpr size_t kSlot = 8192;

Staged Of(uint64_t offset, uint64_t length) {
  Staged staged;
  staged.set_offset(offset);
  staged.set_length(length);
  return staged;
}

// A descriptor of something else, offered as if it was a memory that fits.
SharedMemory OfferOf(int fd, const std::string& nonce, uint64_t bytes) {
  SharedMemory offer;
  offer.set_host(HostIdentity());
  offer.set_pid(static_cast<uint32_t>(getpid()));
  offer.set_fd(static_cast<uint32_t>(fd));
  offer.set_bytes(bytes);
  offer.set_nonce(nonce);
  return offer;
}

TEST(PeerStaging, FetchesACopyOfWhatIsInASlot) {
  auto staging = *SharedStaging::Create(2 * kSlot, kSlot);
  const SharedStaging::Slot slot = *staging->Take();
  std::ranges::fill(slot.bytes(), std::byte{7});
  PeerStaging memory = *PeerStaging::Open(staging->offer());
  const auto bytes = *memory.Fetch(Of(slot.offset(), kSlot));
  ASSERT_EQ(bytes.size(), kSlot);
  // What the peer writes after the copy was made is not in it.
  std::ranges::fill(slot.bytes(), std::byte{8});
  EXPECT_THAT(bytes, Each(std::byte{7}));
  EXPECT_THAT(*memory.Fetch(Of(slot.offset() + 5, 3)), Each(std::byte{8}));
}

TEST(PeerStaging, FetchesNothingFromOutside) {
  auto staging = *SharedStaging::Create(2 * kSlot, kSlot);
  PeerStaging memory = *PeerStaging::Open(staging->offer());
  const uint64_t bytes = staging->offer().bytes();
  EXPECT_TRUE(memory.Fetch(Of(bytes, 0)).ok());  // the first: there is no copy yet
  EXPECT_TRUE(memory.Fetch(Of(bytes - 1, 1)).ok());
  const std::pair<uint64_t, uint64_t> outside[] = {
      {bytes - 1, 2}, {bytes, 1}, {bytes + 1, 0}, {~uint64_t{0}, 2}, {2, ~uint64_t{0}}};
  for (const auto& [offset, length] : outside) {
    const auto fetched = memory.Fetch(Of(offset, length));
    EXPECT_TRUE(absl::IsInvalidArgument(fetched.status())) << offset << ", " << length;
  }
}

TEST(PeerStaging, AFrameHasItsBound) {
  auto staging = *SharedStaging::Create(2 * kMostStagedBytes, kSlot);
  PeerStaging memory = *PeerStaging::Open(staging->offer());
  EXPECT_TRUE(absl::IsInvalidArgument(memory.Fetch(Of(0, kMostStagedBytes + 1)).status()));
}

TEST(PeerStaging, AnOfferThatIsNotTrueIsRefusedWithItsReason) {
  auto staging = *SharedStaging::Create(2 * kSlot, kSlot);
  struct Case {
    std::function<void(SharedMemory&)> change;
    const char* why;
  };
  const Case cases[] = {
      {[](SharedMemory& offer) { offer.set_host("elsewhere pid:[1]"); }, "another host"},
      {[](SharedMemory& offer) { offer.clear_host(); }, "another host"},
      {[](SharedMemory& offer) { offer.set_pid(~0u); }, "No such file"},
      {[](SharedMemory& offer) { offer.set_fd(1 << 30); }, "No such file"},
      {[](SharedMemory& offer) { offer.set_bytes(offer.bytes() - 1); }, "no memory of"},
      {[](SharedMemory& offer) { offer.set_bytes(offer.bytes() + 1); }, "no memory of"},
      {[](SharedMemory& offer) { offer.mutable_nonce()->back() ^= 1; }, "not what was offered"},
      {[](SharedMemory& offer) { offer.mutable_nonce()->pop_back(); }, "no nonce"},
  };
  for (const Case& c : cases) {
    SharedMemory offer = staging->offer();
    c.change(offer);
    const auto memory = PeerStaging::Open(offer);
    EXPECT_TRUE(absl::IsFailedPrecondition(memory.status())) << offer.DebugString();
    EXPECT_THAT(memory.status().message(), HasSubstr(c.why));
  }
  EXPECT_TRUE(PeerStaging::Open(staging->offer()).ok());
  EXPECT_EQ(test::HeldMemories(), 2u) << "the owner's";
}

TEST(PeerStaging, MemoryThatMayShrinkIsRefused) {
  const std::string nonce(kNonceBytes, 'n');
  for (const int seals : {0, F_SEAL_SHRINK, F_SEAL_GROW}) {
    const rpc::Descriptor fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(write(fd.get(), nonce.data(), nonce.size()), std::ssize(nonce));
    ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    const auto memory = PeerStaging::Open(OfferOf(fd.get(), nonce, nonce.size()));
    EXPECT_THAT(memory.status().message(), HasSubstr("not sealed")) << seals;
  }
}

TEST(PeerStaging, WhatIsNoMemoryIsRefusedAndNeverWaitedFor) {
  const std::string nonce(kNonceBytes, 'n');
  test::TempDir dir;
  const std::string file = dir.path() + "/file", fifo = dir.path() + "/fifo";
  const rpc::Descriptor plain(open(file.c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(write(plain.get(), nonce.data(), nonce.size()), std::ssize(nonce));
  EXPECT_FALSE(PeerStaging::Open(OfferOf(plain.get(), nonce, nonce.size())).ok());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const rpc::Descriptor pipe(open(fifo.c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_FALSE(PeerStaging::Open(OfferOf(pipe.get(), nonce, 0)).ok());
}

// Another process, killed while its memory is open here.
TEST(PeerStaging, ADeadSendersMemoryCanBeReadUntilItIsClosedAndNotOpenedAnew) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t sender = fork();
  if (sender == 0) {
    auto staging = *SharedStaging::Create(kSlot, kSlot);
    const SharedStaging::Slot slot = *staging->Take();
    std::ranges::fill(slot.bytes(), std::byte{9});
    const std::string offer = staging->offer().SerializeAsString();
    if (write(ends[1], offer.data(), offer.size()) < 0) _exit(1);
    close(ends[1]);
    for (;;) pause();
  }
  close(ends[1]);
  std::string text;
  for (char byte; read(ends[0], &byte, 1) == 1;) text += byte;
  close(ends[0]);
  SharedMemory offer;
  ASSERT_TRUE(offer.ParseFromString(text));
  absl::StatusOr<PeerStaging> memory = PeerStaging::Open(offer);
  kill(sender, SIGKILL);
  ASSERT_EQ(waitpid(sender, nullptr, 0), sender);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_THAT(*memory->Fetch(Of(offer.bytes() - kSlot, kSlot)), Each(std::byte{9}));
  EXPECT_TRUE(absl::IsFailedPrecondition(PeerStaging::Open(offer).status()));
}

}  // namespace
}  // namespace setu::kv_transfer
