// SPDX-License-Identifier: Apache-2.0
// What only a push with shared memory can do: ask, stage, wait for slots, go without.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/common/kv_transfer/sender_fixture.h"
#include "tests/support/wait_until.h"

namespace setu::kv_transfer {
namespace {

class SenderStagingTest : public SenderTest {
 protected:
  // Two blocks of each of three layers: a frame each.
  std::shared_ptr<Push> StartWhole() {
    auto push = Start(Plan({1, 2}, 32));
    for (int32_t layer = 0; layer < 3; ++layer) push->Final(layer, 2);
    push->Commit({});
    return push;
  }
  const uint64_t whole_bytes_ = 2 * kLayout.block_bytes();
};

TEST_F(SenderStagingTest, EveryFrameWaitsForTheAnswerAndIsStaged) {
  Share(4);
  auto push = StartWhole();  // all of it before an answer can be there
  const PushResult result = Result();
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.kv_bytes, whole_bytes_);
  EXPECT_EQ(result.shm_bytes, whole_bytes_);
  EXPECT_EQ(result.shm_refused, "");
  const auto got = peer_.WaitForPush(0);
  EXPECT_EQ(got.staged, got.frames.size());
  EXPECT_EQ(got.Pieces().at({1, 2}), Stored(2, 2));
}

TEST_F(SenderStagingTest, ARefusedOfferIsSaidAndFramesCarryTheirBytes) {
  Share(4);
  peer_.Misbehave({.memory_refused = "another host"});
  auto push = StartWhole();
  const PushResult result = Result();
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.kv_bytes, whole_bytes_);
  EXPECT_EQ(result.shm_bytes, 0u);
  EXPECT_EQ(result.shm_refused, "another host");
  EXPECT_EQ(peer_.WaitForPush(0).staged, 0u);
}

TEST_F(SenderStagingTest, OneSlotIsEnough) {
  Share(1);
  auto push = StartWhole();
  EXPECT_EQ(Result().shm_bytes, whole_bytes_);
}

TEST_F(SenderStagingTest, WhereOthersHaveAllSlotsFramesCarryTheirBytes) {
  Share(2);
  const std::optional<SharedStaging::Slot> one = staging_->Take(), two = staging_->Take();
  auto push = StartWhole();
  const PushResult result = Result();
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.shm_bytes, 0u);
  EXPECT_EQ(result.shm_refused, "");
}

TEST_F(SenderStagingTest, ASlotIsUsedAgainOnlyWhenTheReceiverHasReadIt) {
  Share(8);
  peer_.Misbehave({.keeps_slots = true});
  auto push = StartWhole();
  peer_.WaitForMessages(0, 1 + kSlotsPerPush);
  EXPECT_EQ(staging_->free(), 8 - kSlotsPerPush);
  push->Cancel();
  EXPECT_EQ(Result().status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(peer_.WaitForPush(0).frames.size(), kSlotsPerPush);
}

TEST_F(SenderStagingTest, ADeadReceiverKeepsNoSlot) {
  Share(8);
  peer_.Misbehave({.keeps_slots = true});
  auto push = StartWhole();
  peer_.WaitForMessages(0, 1 + kSlotsPerPush);
  server_->Shutdown(Duration::zero());
  EXPECT_FALSE(Result().status.ok());
}

TEST_F(SenderStagingTest, AReceiverThatDoesNotAnswerHoldsThePushUntilItIsCancelled) {
  Share(8);
  peer_.Misbehave({.after = 1});
  auto push = StartWhole();
  peer_.WaitForMessages(0, 1);
  push->Cancel();
  const PushResult result = Result();
  EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(result.kv_bytes, 0u);
}

}  // namespace
}  // namespace setu::kv_transfer
