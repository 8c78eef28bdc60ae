// SPDX-License-Identifier: Apache-2.0
#include "common/kv_transfer/sender.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/common/kv_transfer/sender_fixture.h"
#include "tests/support/wait_until.h"

namespace setu::kv_transfer {
namespace {

// Whichever way the bytes go, a push is the same.
class OverEachTransport : public SenderTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    SenderTest::SetUp();
    if (GetParam() == std::string("shm")) Share(4);
  }
};
INSTANTIATE_TEST_SUITE_P(All, OverEachTransport, ::testing::Values("grpc", "shm"),
                         [](const auto& info) { return info.param; });

const wire::FirstToken kFirst = {2, {41, -1.5f, {}}, engine::EndReason::kNone};

TEST_P(OverEachTransport, SendsManifestEveryPieceOnceAndTheCommit) {
  const std::vector<kv::BlockId> blocks = {9, 3, 40, 7};
  auto push = Start(Plan(blocks, 64));
  for (int32_t chunk : {2, 4}) {
    for (int32_t layer = 0; layer < 3; ++layer) push->Final(layer, chunk);
  }
  push->Commit({&kFirst, 1});
  const PushResult result = Result();
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.kv_bytes, 4 * kLayout.block_bytes());

  const test::KvPeer::Received got = peer_.WaitForPush(0);
  EXPECT_EQ(got.manifest.uuid(), "a request");
  EXPECT_EQ(got.manifest.attempt(), 3u);
  EXPECT_EQ(got.manifest.token_count(), 64u);
  EXPECT_EQ(got.manifest.ids_digest(), 77u);
  EXPECT_EQ(got.manifest.wire_version(), wire::kWireVersion);
  EXPECT_EQ(got.manifest.fingerprint().numerics(), "test/kv-f16/r1");
  const auto pieces = got.Pieces();
  EXPECT_EQ(pieces.size(), 12u);
  for (uint32_t block = 0; block < 4; ++block) {
    for (uint32_t layer = 0; layer < 3; ++layer) {
      EXPECT_EQ(pieces.at({block, layer}), Stored(blocks[block], layer));
    }
  }
  ASSERT_TRUE(got.commit.has_value());
  EXPECT_EQ(got.commit->kv_bytes(), result.kv_bytes);
  ASSERT_EQ(got.commit->first_tokens_size(), 1);
  EXPECT_EQ(got.commit->first_tokens(0).token().id(), 41u);
}

TEST_P(OverEachTransport, ALayerGoesOutBeforeTheNextIsFinal) {
  auto push = Start(Plan({1, 2}, 32));
  push->Final(0, 2);
  peer_.WaitForMessages(0, 2);  // manifest, and the frame of layer 0
  push->Final(1, 2);
  push->Final(2, 2);
  push->Commit({});
  EXPECT_TRUE(Result().status.ok());
  EXPECT_EQ(peer_.WaitForPush(0).frames.size(), 3u);
}

// What the link takes counts, not what the prompt takes.
TEST_P(OverEachTransport, CountsTheTimeWhileThereIsSomethingToSend) {
  peer_.Misbehave({.after = 1});  // and does not answer
  auto push = Start(Plan({1}, 16));
  // At its start, and when the manifest is out.
  ASSERT_TRUE(test::WaitUntil(std::chrono::seconds(10), [this] { return clock_.looks() == 2; }));
  clock_.Advance(std::chrono::hours(1));
  for (int32_t layer = 0; layer < 3; ++layer) push->Final(layer, 1);
  push->Commit({});
  clock_.Advance(std::chrono::seconds(3));
  push->Cancel();
  EXPECT_EQ(Result().sending, std::chrono::seconds(3));
}

TEST_P(OverEachTransport, BlocksThatTheReceiverHoldsAreNotSent) {
  PushPlan plan = Plan({1, 2, 3}, 48);
  plan.first_block = 2;
  auto push = Start(std::move(plan));
  for (int32_t layer = 0; layer < 3; ++layer) push->Final(layer, 1);
  for (int32_t layer = 0; layer < 3; ++layer) push->Final(layer, 3);
  push->Commit({});
  EXPECT_EQ(Result().kv_bytes, kLayout.block_bytes());
  const auto got = peer_.WaitForPush(0);
  EXPECT_EQ(got.manifest.first_block(), 2u);
  for (const auto& [key, bytes] : got.Pieces()) EXPECT_EQ(key.first, 2u);
}

TEST_P(OverEachTransport, SlotsBehindTheLastTokenAreZero) {
  auto push = Start(Plan({5, 6}, 16 + 3));
  for (int32_t layer = 0; layer < 3; ++layer) push->Final(layer, 2);
  push->Commit({});
  EXPECT_TRUE(Result().status.ok());
  const auto pieces = peer_.WaitForPush(0).Pieces();
  EXPECT_EQ(pieces.at({0, 1}), Stored(5, 1));
  std::string expected = Stored(6, 1);
  kv::ClearSlots(kLayout, 3, std::as_writable_bytes(std::span(expected)));
  EXPECT_NE(expected, Stored(6, 1));
  EXPECT_EQ(pieces.at({1, 1}), expected);
}

TEST_P(OverEachTransport, FramesKeepToTheirLimit) {
  kv::KvLayout big = kLayout;
  big.head_dim = 4096;  // 512 KiB per piece
  Use(big, 5);
  if (staging_) Share(4);
  auto push = Start(Plan({0, 1, 2, 3, 4}, 80));
  for (int32_t layer = 0; layer < 3; ++layer) push->Final(layer, 5);
  push->Commit({});
  EXPECT_TRUE(Result().status.ok());
  const auto got = peer_.WaitForPush(0);
  EXPECT_EQ(got.frames.size(), 9u);  // 2 + 2 + 1 blocks in each layer
  for (const auto& frame : got.frames) EXPECT_LE(frame.data().size(), kFrameBytes);
  EXPECT_EQ(got.Pieces().size(), 15u);
}

TEST_P(OverEachTransport, TheReceiversRefusalIsTheResult) {
  peer_.Misbehave(
      {.after = 1, .status = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "other model")});
  auto push = Start(Plan({1}, 16));
  for (int32_t layer = 0; layer < 3; ++layer) push->Final(layer, 1);
  push->Commit({});
  EXPECT_EQ(Result().status, absl::FailedPreconditionError("other model"));
}

// Without a write: the step loop may be far from its next layer. Over TCP too, where a receiver's
// end looks different.
TEST_P(OverEachTransport, AnEarlyEndIsHeardAtOnce) {
  const auto tcp = grpc::CreateChannel("127.0.0.1:" + std::to_string(server_->port()),
                                       grpc::InsecureChannelCredentials());
  const grpc::Status refused(grpc::StatusCode::FAILED_PRECONDITION, "other model");
  for (const auto& channel : {tcp, server_->InProcessChannel()}) {
    for (const grpc::Status& end : {refused, grpc::Status::OK}) {
      peer_.Misbehave({.after = 1, .status = end});
      std::promise<PushResult> result;
      auto push = GrpcPush::Start(channel, *storage_, staging_.get(), Plan({1}, 16), clock_,
                                  [&](const PushResult& r) { result.set_value(r); });
      EXPECT_EQ(result.get_future().get().status,
                end.ok()
                    ? absl::InternalError("the decode worker ended the push without committing it")
                    : absl::FailedPreconditionError("other model"));
      push->Final(0, 1);  // harmless from now on
    }
  }
}

TEST_P(OverEachTransport, CancelBeforeAnythingArrived) {
  Start(Plan({1}, 16))->Cancel();
  EXPECT_EQ(Result().status.code(), absl::StatusCode::kCancelled);
}

TEST_P(OverEachTransport, CancelWhileThereIsNothingToSend) {
  auto push = Start(Plan({1}, 16));
  peer_.WaitForMessages(0, 1);
  push->Cancel();
  EXPECT_EQ(Result().status.code(), absl::StatusCode::kCancelled);
  push->Final(1, 1);  // harmless from now on
  push->Commit({});
  push->Cancel();
  EXPECT_EQ(dones_, 1);
}

TEST_P(OverEachTransport, CancelWhileTheReceiverStalls) {
  peer_.Misbehave({.after = 1});
  auto push = Start(Plan({1}, 16));
  for (int32_t layer = 0; layer < 3; ++layer) push->Final(layer, 1);
  push->Commit({});
  peer_.WaitForMessages(0, 1);
  push->Cancel();
  EXPECT_EQ(Result().status.code(), absl::StatusCode::kCancelled);
}

TEST_P(OverEachTransport, CancelWhileTheReceiverKeepsSilentAfterTheCommit) {
  peer_.Misbehave({.keeps_silent = true});
  auto push = Start(Plan({1}, 16));
  for (int32_t layer = 0; layer < 3; ++layer) push->Final(layer, 1);
  push->Commit({});
  peer_.WaitForMessages(0, 5);
  push->Cancel();
  EXPECT_EQ(Result().status.code(), absl::StatusCode::kCancelled);
  push->Cancel();  // harmless from now on
  EXPECT_EQ(dones_, 1);
}

TEST_P(OverEachTransport, NobodyThereIsUnavailable) {
  auto push = GrpcPush::Start(
      grpc::CreateChannel("unix:/nobody/listens/here", grpc::InsecureChannelCredentials()),
      *storage_, staging_.get(), Plan({1}, 16), clock_,
      [this](const PushResult& result) { result_.set_value(result); });
  EXPECT_EQ(result_.get_future().get().status.code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace setu::kv_transfer
