// SPDX-License-Identifier: Apache-2.0
#include "common/kv_transfer/kv_transfer_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/inbox.h"
#include "common/kv_transfer/shared_staging.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "common/wire/checksum.h"
#include "tests/support/fake_clock.h"
#include "tests/support/held_memory.h"
#include "tests/support/wait_until.h"

namespace setu::kv_transfer {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using worker::v1::PushKvRequest;
using worker::v1::PushKvResponse;

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

  // Of a stream that is over, nothing is held.
  void TearDown() override {
    EXPECT_TRUE(test::WaitUntil(std::chrono::seconds(30),
                                [this] { return test::HeldMemories() == held_by_owner_; }));
  }

  // Offers memory where the frames are to be staged.
  PushKvRequest Manifest(uint32_t attempt = 1) {
    PushKvRequest request;
    request.mutable_manifest()->set_uuid("u");
    request.mutable_manifest()->set_attempt(attempt);
    request.mutable_manifest()->set_token_count(kTokens);
    request.mutable_manifest()->set_ids_digest(99);
    request.mutable_manifest()->set_wire_version(wire::kWireVersion);
    if (stages_) *request.mutable_manifest()->mutable_memory() = staging_->offer();
    return request;
  }

  PushKvRequest Frame(uint32_t layer) {
    PushKvRequest request;
    worker::v1::Frame& frame = *request.mutable_frame();
    frame.set_block_count(2);
    frame.set_layer(layer);
    const std::string data(2 * layout_.piece_bytes(), static_cast<char>(layer + 1));
    frame.set_crc32c(wire::Crc32cOf(frame, std::as_bytes(std::span(data))));
    if (stages_) {
      Stage(slots_[layer], data, frame);
    } else {
      frame.set_data(data);
    }
    return request;
  }
  static void Stage(const SharedStaging::Slot& slot, const std::string& data,
                    worker::v1::Frame& frame) {
    std::ranges::copy(std::as_bytes(std::span(data)), slot.bytes().begin());
    frame.mutable_staged()->set_offset(slot.offset());
    frame.mutable_staged()->set_length(data.size());
  }

  PushKvRequest Commit() {
    PushKvRequest request;
    worker::v1::Commit& commit = *request.mutable_commit();
    commit.set_kv_bytes(2 * layout_.block_bytes());
    commit.set_crc32c(wire::Crc32cOf(commit, "u", 1));
    return request;
  }

  std::vector<PushKvRequest> Whole() { return {Manifest(), Frame(0), Frame(1), Commit()}; }

  // Sends the messages, closes, and gives the call's status.
  std::future<absl::Status> Push(std::vector<PushKvRequest> requests) {
    return std::async(std::launch::async, [this, requests = std::move(requests)] {
      grpc::ClientContext context;
      const auto writer = stub_->PushKv(&context);
      // In one process nothing is written before the other side reads.
      const auto reader = std::async(std::launch::async, [&] {
        PushKvResponse answer;
        while (writer->Read(&answer)) answers_.push_back(answer);
      });
      for (const PushKvRequest& request : requests) {
        if (!writer->Write(request)) break;
      }
      writer->WritesDone();
      reader.wait();
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

  bool stages_ = false;
  const std::unique_ptr<SharedStaging> staging_ = *SharedStaging::Create(4 * 1024, 1024);
  const size_t held_by_owner_ = test::HeldMemories();
  const SharedStaging::Slot slots_[2] = {*staging_->Take(), *staging_->Take()};
  std::vector<PushKvResponse> answers_;  // of all pushes; theirs until they are over
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

// A push is the same whichever way its bytes come.
class OverEachTransport : public KvTransferServiceTest,
                          public ::testing::WithParamInterface<const char*> {
 protected:
  OverEachTransport() { stages_ = GetParam() == std::string("shm"); }
};
INSTANTIATE_TEST_SUITE_P(All, OverEachTransport, ::testing::Values("grpc", "shm"),
                         [](const auto& info) { return info.param; });

TEST_P(OverEachTransport, APushIsAnsweredOnceTheLoopHasTakenItsCommit) {
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

TEST_P(OverEachTransport, TheLoopMayRefuseACommit) {
  const auto transfer = Expect();
  auto status = Push(Whole());
  Next<TransferStarted>();
  transfer->Bind(blocks_);
  Next<TransferCommitted>();
  transfer->Finish(absl::InvalidArgumentError("other choices"));
  EXPECT_TRUE(absl::IsInvalidArgument(status.get()));
}

TEST_P(OverEachTransport, AStreamBeginsWithTheManifestOfAnExpectedAttempt) {
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

TEST_P(OverEachTransport, ABadMessageEndsTheStreamAndFailsTheAttempt) {
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

TEST_P(OverEachTransport, OneStreamPerAttempt) {
  const auto transfer = Expect();
  auto first = Push(Whole());
  Next<TransferStarted>();
  EXPECT_TRUE(absl::IsAlreadyExists(Push(Whole()).get()));
  transfer->Bind(blocks_);
  Next<TransferCommitted>();
  transfer->Finish(absl::OkStatus());
  EXPECT_TRUE(first.get().ok());
}

TEST_P(OverEachTransport, ACancelledStreamFailsTheAttempt) {
  const auto transfer = Expect();
  grpc::ClientContext context;
  const auto writer = stub_->PushKv(&context);
  EXPECT_TRUE(writer->Write(Manifest()));
  Next<TransferStarted>();
  transfer->Bind(blocks_);
  EXPECT_TRUE(writer->Write(Frame(0)));
  context.TryCancel();
  EXPECT_TRUE(absl::IsCancelled(Next<TransferFailed>().status));
  PushKvResponse answer;
  while (writer->Read(&answer)) {
  }
  EXPECT_FALSE(writer->Finish().ok());
}

TEST_P(OverEachTransport, AWithdrawnStreamEndsAtOnce) {
  const auto transfer = Expect();
  auto waiting_for_blocks = Push(Whole());
  Next<TransferStarted>();
  EXPECT_TRUE(transfer->Withdraw());
  EXPECT_TRUE(absl::IsAborted(waiting_for_blocks.get()));
}

TEST_P(OverEachTransport, TheServerStopsWithAStreamThatWaits) {
  const auto transfer = Expect();
  auto status = Push(Whole());
  Next<TransferStarted>();
  server_->Shutdown(Duration::zero());
  Next<TransferFailed>();
  EXPECT_FALSE(status.get().ok());
}

// What only a push with shared memory brings.
class StagedPushTest : public KvTransferServiceTest {
 protected:
  StagedPushTest() { stages_ = true; }
  // Pushes a frame that must be refused.
  absl::Status Refused(const PushKvRequest& frame) {
    const auto transfer = Expect();
    auto status = Push({Manifest(), frame});
    Next<TransferStarted>();
    transfer->Bind(blocks_);
    EXPECT_FALSE(Next<TransferFailed>().status.ok());
    EXPECT_THAT(storage_->Piece(1, 0), Each(std::byte{0}));
    return status.get();
  }
};

TEST_F(StagedPushTest, TheOfferIsAnsweredAndEachFrameThatWasRead) {
  const auto transfer = Expect();
  auto status = Push(Whole());
  Next<TransferStarted>();
  transfer->Bind(blocks_);
  EXPECT_EQ(Next<TransferCommitted>().shm_bytes, 2 * layout_.block_bytes());
  transfer->Finish(absl::OkStatus());
  ASSERT_TRUE(status.get().ok());
  ASSERT_GE(answers_.size(), 2u);  // counts that came together are one
  EXPECT_TRUE(answers_.front().has_memory());
  EXPECT_EQ(answers_.front().memory().refused_because(), "");
  uint64_t read = 0;
  for (const PushKvResponse& answer : answers_) {
    if (!answer.has_frames_read()) continue;
    EXPECT_GT(answer.frames_read(), read);
    read = answer.frames_read();
  }
  EXPECT_LE(read, 2u);
  EXPECT_TRUE(answers_.back().committed());
}

TEST_F(StagedPushTest, AnOfferThatIsNotTakenIsAnsweredWhyAndFramesMayCarryTheirBytes) {
  PushKvRequest manifest = Manifest();
  manifest.mutable_manifest()->mutable_memory()->set_host("elsewhere");
  stages_ = false;
  const auto transfer = Expect();
  auto status = Push({manifest, Frame(0), Frame(1), Commit()});
  Next<TransferStarted>();
  transfer->Bind(blocks_);
  EXPECT_EQ(Next<TransferCommitted>().shm_bytes, 0u);
  transfer->Finish(absl::OkStatus());
  EXPECT_TRUE(status.get().ok());
  EXPECT_THAT(answers_.front().memory().refused_because(), HasSubstr("another host"));
}

TEST_F(StagedPushTest, WithoutMemoryNothingIsStaged) {
  const PushKvRequest staged = Frame(0);
  stages_ = false;
  EXPECT_TRUE(absl::IsInvalidArgument(Refused(staged)));
}

TEST_F(StagedPushTest, AFrameLiesInsideTheMemory) {
  const uint64_t bytes = 2 * layout_.piece_bytes();
  const std::pair<uint64_t, uint64_t> wrong[] = {{staging_->offer().bytes() - 1, bytes},
                                                 {~uint64_t{0}, bytes},
                                                 {slots_[0].offset(), ~uint64_t{0}}};
  for (const auto& [offset, length] : wrong) {
    PushKvRequest frame = Frame(0);
    frame.mutable_frame()->mutable_staged()->set_offset(offset);
    frame.mutable_frame()->mutable_staged()->set_length(length);
    EXPECT_TRUE(absl::IsInvalidArgument(Refused(frame))) << offset << ", " << length;
  }
}

TEST_F(StagedPushTest, AFrameIsAsLongAsItsBlocks) {
  PushKvRequest request = Frame(0);
  worker::v1::Frame& frame = *request.mutable_frame();
  const auto cut = slots_[0].bytes().first(2 * layout_.piece_bytes() - 1);
  frame.mutable_staged()->set_length(cut.size());
  frame.set_crc32c(wire::Crc32cOf(frame, cut));
  EXPECT_TRUE(absl::IsInvalidArgument(Refused(request)));
}

// As where an attempt was given up at its sender, and its slot has the frame of another by the time
// it is read.
TEST_F(StagedPushTest, ASlotThatHoldsAnotherFrameByNowIsDataLoss) {
  const PushKvRequest frame = Frame(0);
  std::ranges::fill(slots_[0].bytes(), std::byte{99});
  EXPECT_TRUE(absl::IsDataLoss(Refused(frame)));
}

TEST_F(StagedPushTest, AnOlderAttemptMayStageNothing) {
  const auto transfer =
      receiver_.Expect({.uuid = "u", .attempt = 2, .token_count = kTokens, .ids_digest = 99});
  EXPECT_TRUE(absl::IsNotFound(Push(Whole()).get()));
  EXPECT_TRUE(inbox_.Drain().empty());
}

// The stream is still there and waits for blocks, with the memory mapped.
TEST_F(StagedPushTest, AWithdrawnAttemptLetsGoOfTheMemory) {
  const auto transfer = Expect();
  auto status = Push(Whole());
  Next<TransferStarted>();
  EXPECT_EQ(test::HeldMemories(), held_by_owner_ + 1);
  EXPECT_TRUE(transfer->Withdraw());
  EXPECT_TRUE(absl::IsAborted(status.get()));
}

}  // namespace
}  // namespace setu::kv_transfer
