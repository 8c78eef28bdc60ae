// SPDX-License-Identifier: Apache-2.0
#include "common/kv_transfer/kv_transfer_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/inbox.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "tests/support/fake_clock.h"

namespace setu::kv_transfer {
namespace {

using ::testing::Each;
using worker::v1::PushKvRequest;

constexpr int32_t kTokens = 8;  // two blocks

// The test's thread is the loop; each push runs on a thread of its own.
class KvTransferServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = rpc::Server::Start({}, {&service_});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = worker::v1::KvTransferService::NewStub(server_->InProcessChannel());
  }

  std::shared_ptr<Transfer> Expect() {
    return receiver_.Expect({.uuid = "u", .attempt = 1, .token_count = kTokens, .ids_digest = 99});
  }

  static PushKvRequest Manifest(uint32_t attempt = 1) {
    PushKvRequest request;
    request.mutable_manifest()->set_uuid("u");
    request.mutable_manifest()->set_attempt(attempt);
    request.mutable_manifest()->set_token_count(kTokens);
    request.mutable_manifest()->set_ids_digest(99);
    request.mutable_manifest()->set_wire_version(wire::kWireVersion);
    return request;
  }

  PushKvRequest Frame(uint32_t layer) {
    PushKvRequest request;
    worker::v1::Frame& frame = *request.mutable_frame();
    frame.set_block_count(2);
    frame.set_layer(layer);
    frame.set_data(std::string(2 * layout_.piece_bytes(), static_cast<char>(layer + 1)));
    frame.set_crc32c(wire::Crc32c(std::as_bytes(std::span(frame.data()))));
    return request;
  }

  PushKvRequest Commit() {
    PushKvRequest request;
    request.mutable_commit()->set_kv_bytes(2 * layout_.block_bytes());
    return request;
  }

  std::vector<PushKvRequest> Whole() { return {Manifest(), Frame(0), Frame(1), Commit()}; }

  // Sends the messages, closes, and gives the call's status.
  std::future<absl::Status> Push(std::vector<PushKvRequest> requests) {
    return std::async(std::launch::async, [this, requests = std::move(requests)] {
      grpc::ClientContext context;
      worker::v1::PushKvResponse response;
      const auto writer = stub_->PushKv(&context, &response);
      for (const PushKvRequest& request : requests) {
        if (!writer->Write(request)) break;
      }
      writer->WritesDone();
      return rpc::ToAbsl(writer->Finish());
    });
  }

  // The next event, which must be a T.
  template <typename T>
  T Next() {
    if (pending_.empty()) {
      inbox_.WaitUntil(std::chrono::steady_clock::now() + std::chrono::seconds(30));
      for (TransferEvent& event : inbox_.Drain()) pending_.push_back(std::move(event));
    }
    if (pending_.empty() || !std::holds_alternative<T>(pending_.front())) {
      ADD_FAILURE() << "another event, or none";
      return {};
    }
    T event = std::get<T>(std::move(pending_.front()));
    pending_.pop_front();
    return event;
  }

  const kv::KvLayout layout_{.block_tokens = 4, .layers = 2, .kv_heads = 1, .head_dim = 4};
  const std::unique_ptr<kv::KvStorage> storage_ = *kv::KvStorage::Create(layout_, 2);
  const std::vector<kv::BlockId> blocks_ = {1, 0};
  testing::FakeClock clock_;
  Inbox<TransferEvent> inbox_{100};
  std::deque<TransferEvent> pending_;
  Receiver receiver_{{}, 100, *storage_, clock_, [this](TransferEvent event) {
                       inbox_.PushUnbounded(std::move(event));
                     }};
  KvTransferService service_{receiver_};
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<worker::v1::KvTransferService::Stub> stub_;
};

TEST_F(KvTransferServiceTest, APushIsAnsweredOnceTheLoopHasTakenItsCommit) {
  const auto transfer = Expect();
  auto status = Push(Whole());
  Next<TransferStarted>();
  transfer->Bind(blocks_);
  EXPECT_EQ(Next<TransferCommitted>().kv_bytes, 2 * layout_.block_bytes());
  EXPECT_THAT(storage_->Piece(0, 1), Each(std::byte(2)));
  EXPECT_EQ(status.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  transfer->Finish(absl::OkStatus());
  EXPECT_TRUE(status.get().ok());
}

TEST_F(KvTransferServiceTest, TheLoopMayRefuseACommit) {
  const auto transfer = Expect();
  auto status = Push(Whole());
  Next<TransferStarted>();
  transfer->Bind(blocks_);
  Next<TransferCommitted>();
  transfer->Finish(absl::InvalidArgumentError("other choices"));
  EXPECT_TRUE(absl::IsInvalidArgument(status.get()));
}

TEST_F(KvTransferServiceTest, AStreamBeginsWithTheManifestOfAnExpectedAttempt) {
  const auto transfer = Expect();
  EXPECT_TRUE(absl::IsNotFound(Push({Manifest(2)}).get()));
  EXPECT_TRUE(absl::IsInvalidArgument(Push({Frame(0)}).get()));
  EXPECT_TRUE(absl::IsInvalidArgument(Push({Commit()}).get()));
  EXPECT_TRUE(absl::IsInvalidArgument(Push({PushKvRequest()}).get()));
  EXPECT_TRUE(absl::IsCancelled(Push({}).get()));
  PushKvRequest other_prompt = Manifest();
  other_prompt.mutable_manifest()->set_ids_digest(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(Push({other_prompt}).get()));
  EXPECT_TRUE(inbox_.Drain().empty());
}

TEST_F(KvTransferServiceTest, ABadMessageEndsTheStreamAndFailsTheAttempt) {
  PushKvRequest flipped = Frame(1);
  flipped.mutable_frame()->set_crc32c(1);
  const std::vector<std::vector<PushKvRequest>> bad = {
      {Manifest(), Frame(0), flipped, Commit()}, {Manifest(), Frame(0), Frame(0), Commit()},
      {Manifest(), Frame(0), Commit()},          {Manifest(), Manifest()},
      {Manifest(), Frame(0), Frame(1)},
  };
  for (const auto& requests : bad) {
    const auto transfer = Expect();
    ASSERT_NE(transfer, nullptr) << "the attempt before is over";
    auto status = Push(requests);
    Next<TransferStarted>();
    transfer->Bind(blocks_);
    EXPECT_FALSE(Next<TransferFailed>().status.ok());
    EXPECT_FALSE(status.get().ok());
  }
}

TEST_F(KvTransferServiceTest, OneStreamPerAttempt) {
  const auto transfer = Expect();
  auto first = Push(Whole());
  Next<TransferStarted>();
  EXPECT_TRUE(absl::IsAlreadyExists(Push(Whole()).get()));
  transfer->Bind(blocks_);
  Next<TransferCommitted>();
  transfer->Finish(absl::OkStatus());
  EXPECT_TRUE(first.get().ok());
}

TEST_F(KvTransferServiceTest, ACancelledStreamFailsTheAttempt) {
  const auto transfer = Expect();
  grpc::ClientContext context;
  worker::v1::PushKvResponse response;
  const auto writer = stub_->PushKv(&context, &response);
  EXPECT_TRUE(writer->Write(Manifest()));
  Next<TransferStarted>();
  transfer->Bind(blocks_);
  EXPECT_TRUE(writer->Write(Frame(0)));
  context.TryCancel();
  EXPECT_TRUE(absl::IsCancelled(Next<TransferFailed>().status));
  EXPECT_FALSE(writer->Finish().ok());
}

TEST_F(KvTransferServiceTest, AWithdrawnStreamEndsAtOnce) {
  const auto transfer = Expect();
  auto waiting_for_blocks = Push(Whole());
  Next<TransferStarted>();
  EXPECT_TRUE(transfer->Withdraw());
  EXPECT_TRUE(absl::IsAborted(waiting_for_blocks.get()));
}

TEST_F(KvTransferServiceTest, TheServerStopsWithAStreamThatWaits) {
  const auto transfer = Expect();
  auto status = Push(Whole());
  Next<TransferStarted>();
  server_->Shutdown(Duration::zero());
  Next<TransferFailed>();
  EXPECT_FALSE(status.get().ok());
}

}  // namespace
}  // namespace setu::kv_transfer
