// SPDX-License-Identifier: Apache-2.0
#include "common/kv_transfer/receiver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/wire/checksum.h"
#include "tests/common/kv_transfer/receiver_fixture.h"

namespace setu::kv_transfer {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// What a message becomes by one turned bit on its way, wherever a parser takes it and it says
// something else.
template <typename Message>
void ForEachFlip(const Message& message, auto act) {
  const std::string bytes = message.SerializeAsString();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    Message read;
    if (!read.ParseFromString(flipped)) continue;
    // A field that nobody knows, or a default that is written out, says nothing.
    read.DiscardUnknownFields();
    if (read.SerializeAsString() != bytes) act(read);
  }
}

TEST_F(ReceiverTest, BlocksThatAreHeldAlreadyAreNeitherSentNorWritten) {
  Expectation expected = Expected();
  expected.first_block = 1;
  Manifest manifest = FittingManifest();
  manifest.set_first_block(1);
  const std::shared_ptr<Transfer> transfer = receiver_->Expect(expected);
  EXPECT_TRUE(transfer->Begin(manifest, stream_).ok());
  transfer->Bind(blocks_);
  const absl::Status held = transfer->Take(FrameOf(0, 1, 0));
  EXPECT_TRUE(absl::IsInvalidArgument(held)) << held;
  EXPECT_THAT(held.message(), HasSubstr("must be at least 1"));
  Commit commit = FullCommit();
  EXPECT_TRUE(absl::IsDataLoss(transfer->Commit(commit))) << "nothing was sent yet";
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    EXPECT_TRUE(transfer->Take(FrameOf(1, 1, layer)).ok());
  }
  EXPECT_TRUE(absl::IsDataLoss(transfer->Commit(commit))) << "that many bytes do not lack";
  commit.set_kv_bytes(layout_.block_bytes());
  Sign(commit);
  EXPECT_TRUE(transfer->Commit(commit).ok());
  EXPECT_EQ(std::get<TransferCommitted>(events_.back()).kv_bytes, layout_.block_bytes());
}

TEST_F(ReceiverTest, FramesLandInTheLeasedBlocksAndTheLoopAnswersTheCommit) {
  const std::shared_ptr<Transfer> transfer = Bound();
  EXPECT_TRUE(transfer->Take(FrameOf(1, 1, 2)).ok());
  EXPECT_TRUE(transfer->Take(FrameOf(0, 1, 2)).ok());
  EXPECT_TRUE(transfer->Take(FrameOf(0, 2, 1)).ok());
  EXPECT_TRUE(transfer->Take(FrameOf(0, 2, 0)).ok());
  ASSERT_TRUE(transfer->Commit(FullCommit()).ok());
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    EXPECT_THAT(storage_->Piece(3, layer), Each(std::byte(layer)));
    EXPECT_THAT(storage_->Piece(1, layer), Each(std::byte(10 + layer)));
    EXPECT_THAT(storage_->Piece(0, layer), Each(std::byte(0))) << "not leased";
  }
  ASSERT_EQ(events_.size(), 2u);
  const auto& committed = std::get<TransferCommitted>(events_[1]);
  EXPECT_EQ(committed.owner, 42u);
  EXPECT_EQ(committed.attempt, 1u);
  EXPECT_EQ(committed.kv_bytes, 2 * layout_.block_bytes());
  ASSERT_EQ(committed.first_tokens.size(), 1u);
  EXPECT_EQ(committed.first_tokens[0].token.id, 5);
  EXPECT_FALSE(stream_->end.has_value()) << "OK only once the loop has taken it";
  transfer->Finish(absl::OkStatus());
  EXPECT_TRUE(stream_->end->ok());
}

TEST_F(ReceiverTest, OnlyTheExpectedAttemptIsFound) {
  const std::shared_ptr<Transfer> transfer = receiver_->Expect(Expected(3));
  EXPECT_TRUE(receiver_->Find(FittingManifest(3)).ok());
  for (uint32_t attempt : {0u, 2u, 4u}) {
    EXPECT_TRUE(absl::IsNotFound(receiver_->Find(FittingManifest(attempt)).status()));
  }
  Manifest other = FittingManifest(3);
  other.set_uuid("v");
  EXPECT_TRUE(absl::IsNotFound(receiver_->Find(other).status()));
}

TEST_F(ReceiverTest, AnAttemptThatTheLoopLetGoIsUnknown) {
  receiver_->Expect(Expected()).reset();
  EXPECT_TRUE(absl::IsNotFound(receiver_->Find(FittingManifest()).status()));
}

TEST_F(ReceiverTest, OneTransferPerAttempt) {
  const std::shared_ptr<Transfer> transfer = receiver_->Expect(Expected());
  EXPECT_EQ(receiver_->Expect(Expected()), nullptr);
  EXPECT_NE(receiver_->Expect(Expected(2)), nullptr);
  transfer->Withdraw();
  EXPECT_NE(receiver_->Expect(Expected()), nullptr) << "anew, once it is over";
}

TEST_F(ReceiverTest, AManifestThatDiffersIsRefusedByName) {
  const std::vector<std::pair<std::string, std::function<void(Manifest&)>>> forged = {
      {"wire_version", [](Manifest& m) { m.set_wire_version(wire::kWireVersion + 1); }},
      {"token_count is 8", [](Manifest& m) { m.set_token_count(kTokens + 1); }},
      {"token_count is 0", [](Manifest& m) { m.set_token_count(0); }},
      {"ids_digest", [](Manifest& m) { m.set_ids_digest(98); }},
      {"first_block", [](Manifest& m) { m.set_first_block(1); }},
      {"model", [](Manifest& m) { m.mutable_fingerprint()->set_model(1); }},
      {"tokenizer", [](Manifest& m) { m.mutable_fingerprint()->set_tokenizer(1); }},
      {"int8", [](Manifest& m) { m.mutable_fingerprint()->set_numerics("int8"); }},
      {"logits", [](Manifest& m) { m.mutable_fingerprint()->set_logits_digest(1); }},
      {"layout", [](Manifest& m) { m.mutable_fingerprint()->mutable_kv_layout()->set_layers(9); }},
      {"layout",
       [](Manifest& m) { m.mutable_fingerprint()->mutable_kv_layout()->set_head_dim(9); }},
      {"layout",
       [](Manifest& m) { m.mutable_fingerprint()->mutable_kv_layout()->set_value_bytes(9); }},
      {"", [](Manifest& m) { m.clear_fingerprint(); }},
  };
  const std::shared_ptr<Transfer> transfer = receiver_->Expect(Expected());
  for (const auto& [what, forge] : forged) {
    Manifest manifest = FittingManifest();
    forge(manifest);
    const absl::Status refused = transfer->Begin(manifest, stream_);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << what << ": " << refused;
    EXPECT_THAT(refused.message(), HasSubstr(what));
  }
  EXPECT_TRUE(events_.empty());
  EXPECT_TRUE(transfer->Begin(FittingManifest(), stream_).ok()) << "a fitting one may still come";
}

TEST_F(ReceiverTest, ASecondStreamIsRefusedAndDoesNotHurtTheFirst) {
  const std::shared_ptr<Transfer> transfer = Bound();
  const auto second = std::make_shared<FakeStream>();
  EXPECT_TRUE(absl::IsAlreadyExists(transfer->Begin(FittingManifest(), second)));
  transfer->Lost(second.get(), absl::CancelledError("gone"));
  SendAll(*transfer);
  EXPECT_TRUE(transfer->Commit(FullCommit()).ok());
  EXPECT_EQ(Count<TransferFailed>(), 0);
}

TEST_F(ReceiverTest, AForgedFrameIsRefusedAndWritesNothing) {
  const std::vector<std::pair<std::string, std::function<void(Frame&)>>> forged = {
      {"block_count is 0", [](Frame& f) { f.set_block_count(0); }},
      {"first_block + block_count is 3", [](Frame& f) { f.set_first_block(2); }},
      {"first_block + block_count", [](Frame& f) { f.set_first_block(0xffffffffu); }},
      {"first_block + block_count", [](Frame& f) { f.set_block_count(0xffffffffu); }},
      {"layer is 3", [](Frame& f) { f.set_layer(kLayers); }},
      {"layer", [](Frame& f) { f.set_layer(0xffffffffu); }},
      {"bytes", [](Frame& f) { f.mutable_data()->push_back(0); }},
      {"bytes", [](Frame& f) { f.mutable_data()->pop_back(); }},
      {"bytes", [](Frame& f) { f.clear_data(); }},
      {"bytes", [](Frame& f) { f.set_block_count(2), f.set_first_block(0); }},
  };
  const std::shared_ptr<Transfer> transfer = Bound();
  for (const auto& [what, forge] : forged) {
    Frame frame = FrameOf(1, 1, 0);
    forge(frame);
    Sign(frame);
    const absl::Status refused = transfer->Take(frame);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << what << ": " << refused;
    EXPECT_THAT(refused.message(), HasSubstr(what));
  }
  for (kv::BlockId block = 0; block < 4; ++block) {
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      EXPECT_THAT(storage_->Piece(block, layer), Each(std::byte(0)));
    }
  }
}

TEST_F(ReceiverTest, AnyFlippedBitIsDataLoss) {
  const std::shared_ptr<Transfer> transfer = Bound();
  const Frame frame = FrameOf(0, 2, 1);
  int taken = 0;
  ForEachFlip(frame, [&](const Frame& flipped) {
    const absl::Status status = transfer->Take(flipped);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status << " " << flipped.DebugString();
    ++taken;
  });
  EXPECT_GE(taken, 8 * std::ssize(frame.data()));
  EXPECT_TRUE(transfer->Take(frame).ok());
}

// Nor is one for another request, of as many tokens, or for another attempt taken for its own.
TEST_F(ReceiverTest, AnyFlippedBitOfACommitIsDataLoss) {
  const std::shared_ptr<Transfer> transfer = Bound();
  SendAll(*transfer);
  const Commit commit = FullCommit();
  int taken = 0;
  ForEachFlip(commit, [&](const Commit& flipped) {
    const absl::Status status = transfer->Commit(flipped);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status << " " << flipped.DebugString();
    ++taken;
  });
  EXPECT_GE(taken, 32);
  for (const auto& [uuid, attempt] : {std::pair("v", 1), {"u", 2}}) {
    Commit other = commit;
    other.set_crc32c(wire::Crc32cOf(commit, uuid, attempt));
    EXPECT_TRUE(absl::IsDataLoss(transfer->Commit(other)));
  }
  EXPECT_EQ(Count<TransferCommitted>(), 0);
  EXPECT_TRUE(transfer->Commit(commit).ok());
}

TEST_F(ReceiverTest, APieceIsTakenOnce) {
  const std::shared_ptr<Transfer> transfer = Bound();
  EXPECT_TRUE(transfer->Take(FrameOf(1, 1, 0)).ok());
  const absl::Status twice = transfer->Take(FrameOf(0, 2, 0));
  EXPECT_TRUE(absl::IsInvalidArgument(twice)) << twice;
  EXPECT_THAT(twice.message(), HasSubstr("block 1 of layer 0"));
}

TEST_F(ReceiverTest, ACommitWithoutEveryPieceIsDataLoss) {
  const std::shared_ptr<Transfer> transfer = Bound();
  EXPECT_TRUE(absl::IsDataLoss(transfer->Commit(FullCommit())));
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    EXPECT_TRUE(transfer->Take(FrameOf(0, 1, layer)).ok());
  }
  EXPECT_TRUE(transfer->Take(FrameOf(1, 1, 0)).ok());
  EXPECT_TRUE(transfer->Take(FrameOf(1, 1, 2)).ok());
  const absl::Status missing = transfer->Commit(FullCommit());
  EXPECT_TRUE(absl::IsDataLoss(missing)) << missing;
  EXPECT_EQ(Count<TransferCommitted>(), 0);
}

TEST_F(ReceiverTest, ACommitSaysTheBytesAndIdsOfTheVocabulary) {
  const std::shared_ptr<Transfer> transfer = Bound();
  SendAll(*transfer);
  Commit commit = FullCommit();
  commit.set_kv_bytes(commit.kv_bytes() - 1);
  Sign(commit);
  EXPECT_TRUE(absl::IsDataLoss(transfer->Commit(commit)));
  commit = FullCommit();
  commit.mutable_first_tokens(0)->mutable_token()->set_id(kVocabulary);
  Sign(commit);
  EXPECT_TRUE(absl::IsInvalidArgument(transfer->Commit(commit)));
  EXPECT_TRUE(transfer->Commit(FullCommit()).ok());
}

TEST_F(ReceiverTest, StagedFramesAreCheckedAsOthersAndCounted) {
  const std::shared_ptr<Transfer> transfer = Bound();
  EXPECT_TRUE(transfer->Take(FrameOf(0, 2, 0)).ok());
  const std::vector<std::byte> others(2 * layout_.piece_bytes(), std::byte{99});
  for (uint32_t layer = 1; layer < kLayers; ++layer) {
    Frame frame = FrameOf(0, 2, layer);
    const std::string data = frame.data();
    const auto bytes = std::as_bytes(std::span(data));
    frame.mutable_staged()->set_length(data.size());
    Frame cut = frame;
    const auto beginning = bytes.first(data.size() - 1);
    cut.set_crc32c(wire::Crc32cOf(cut, beginning));
    EXPECT_TRUE(absl::IsInvalidArgument(transfer->TakeStaged(cut, beginning)));
    EXPECT_TRUE(absl::IsDataLoss(transfer->TakeStaged(frame, others)));
    EXPECT_TRUE(transfer->TakeStaged(frame, bytes).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(transfer->TakeStaged(frame, bytes))) << "twice";
  }
  EXPECT_TRUE(transfer->Commit(FullCommit()).ok());
  const auto& committed = std::get<TransferCommitted>(events_.back());
  EXPECT_EQ(committed.kv_bytes, 2 * layout_.block_bytes());
  EXPECT_EQ(committed.shm_bytes, 2 * (kLayers - 1) * layout_.piece_bytes());
}

TEST_F(ReceiverTest, ALostStreamFailsTheAttemptOnceUnlessCommitted) {
  const std::shared_ptr<Transfer> transfer = Bound();
  transfer->Lost(stream_.get(), absl::DataLossError("flipped"));
  transfer->Lost(stream_.get(), absl::CancelledError("gone"));
  ASSERT_EQ(Count<TransferFailed>(), 1);
  EXPECT_TRUE(absl::IsDataLoss(std::get<TransferFailed>(events_.back()).status));
  EXPECT_TRUE(transfer->over());
  EXPECT_TRUE(absl::IsAborted(transfer->Take(FrameOf(0, 2, 0))));
}

TEST_F(ReceiverTest, ACommitStandsWhenItsStreamIsLost) {
  const std::shared_ptr<Transfer> transfer = Bound();
  SendAll(*transfer);
  EXPECT_TRUE(transfer->Commit(FullCommit()).ok());
  transfer->Lost(stream_.get(), absl::CancelledError("gone"));
  EXPECT_EQ(Count<TransferFailed>(), 0);
  EXPECT_FALSE(transfer->over());
}

TEST_F(ReceiverTest, AWithdrawnTransferWritesNoMore) {
  const std::shared_ptr<Transfer> transfer = Bound();
  EXPECT_TRUE(transfer->Withdraw());
  EXPECT_TRUE(absl::IsAborted(*stream_->end));
  EXPECT_TRUE(absl::IsAborted(transfer->Take(FrameOf(0, 2, 0))));
  EXPECT_THAT(storage_->Piece(3, 0), Each(std::byte(0)));
  transfer->Lost(stream_.get(), absl::CancelledError("gone"));
  EXPECT_EQ(events_.size(), 1u) << "only Started: the loop knows already";
}

// Withdrawing races with a copy, many times: whichever way it goes, the blocks are the loop's alone
// from the moment it is told so.
TEST(ReceiverThreads, NothingIsWrittenOnceTheLoopHasItsBlocksBack) {
  const kv::KvLayout layout{.block_tokens = 16, .layers = 1, .kv_heads = 4, .head_dim = 64};
  const auto storage = *kv::KvStorage::Create(layout, 8);
  const std::vector<kv::BlockId> blocks = {0, 1, 2, 3, 4, 5, 6, 7};
  Manifest manifest;
  manifest.set_token_count(8 * layout.block_tokens);
  manifest.set_wire_version(wire::kWireVersion);
  Frame frame;
  frame.set_block_count(8);
  frame.mutable_data()->assign(8 * layout.block_bytes(), 1);
  frame.set_crc32c(wire::Crc32cOf(frame, std::as_bytes(std::span(frame.data()))));
  const testing::FakeClock clock;
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> withdrawn = false, sending = false;
    Receiver receiver({}, kVocabulary, *storage, clock, [&](const TransferEvent& event) {
      if (std::holds_alternative<TransferWithdrawn>(event)) withdrawn = true;
    });
    const auto transfer = receiver.Expect({.token_count = 8 * layout.block_tokens});
    ASSERT_TRUE(transfer->Begin(manifest, std::make_shared<FakeStream>()).ok());
    transfer->Bind(blocks);
    std::thread stream([&] {
      sending = true;
      (void)transfer->Take(frame);
    });
    while (!sending) std::this_thread::yield();
    for (int spin = 0; spin < round * 200; ++spin) (void)withdrawn.load();
    if (!transfer->Withdraw()) {
      while (!withdrawn) std::this_thread::yield();
    }
    for (kv::BlockId block : blocks) std::ranges::fill(storage->Piece(block, 0), std::byte(0xaa));
    stream.join();
    for (kv::BlockId block : blocks) {
      ASSERT_TRUE(std::ranges::all_of(storage->Piece(block, 0),
                                      [](std::byte b) { return b == std::byte(0xaa); }))
          << "round " << round << ", block " << block;
    }
  }
}

TEST_F(ReceiverTest, AWithdrawnTransferTakesNoManifestAndNoCommit) {
  const std::shared_ptr<Transfer> early = receiver_->Expect(Expected(2));
  EXPECT_TRUE(early->Withdraw());
  EXPECT_TRUE(absl::IsAborted(early->Begin(FittingManifest(2), stream_)));
  const std::shared_ptr<Transfer> late = Bound();
  SendAll(*late);
  EXPECT_TRUE(late->Withdraw());
  EXPECT_TRUE(absl::IsAborted(late->Commit(FullCommit())));
  EXPECT_EQ(Count<TransferCommitted>(), 0);
}

TEST_F(ReceiverTest, BindAfterTheStreamWasLostIsNothing) {
  const std::shared_ptr<Transfer> transfer = receiver_->Expect(Expected());
  EXPECT_TRUE(transfer->Begin(FittingManifest(), stream_).ok());
  transfer->Lost(stream_.get(), absl::CancelledError("gone"));
  transfer->Bind(blocks_);
  EXPECT_EQ(stream_->proceeded, 0);
}

TEST_F(ReceiverTest, ArrivalsAreTimed) {
  const TimePoint start = clock_.Now();
  const std::shared_ptr<Transfer> transfer = Bound();
  EXPECT_EQ(transfer->last_arrival(), start);
  clock_.Advance(std::chrono::seconds(3));
  EXPECT_TRUE(transfer->Take(FrameOf(0, 1, 0)).ok());
  EXPECT_EQ(transfer->last_arrival(), start + std::chrono::seconds(3));
}

}  // namespace
}  // namespace setu::kv_transfer
