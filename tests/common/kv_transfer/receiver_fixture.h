// SPDX-License-Identifier: Apache-2.0
// A receiver whose loop is the test, and the messages of one push that fits it.
#ifndef SETU_TESTS_COMMON_KV_TRANSFER_RECEIVER_FIXTURE_H_
#define SETU_TESTS_COMMON_KV_TRANSFER_RECEIVER_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "common/kv_transfer/receiver.h"
#include "common/wire/checksum.h"
#include "tests/support/fake_clock.h"

namespace setu::kv_transfer {

using worker::v1::Commit;
using worker::v1::Frame;
using worker::v1::Manifest;

inline constexpr int32_t kVocabulary = 100;
inline constexpr int32_t kLayers = 3;
inline constexpr int32_t kTokens = 7;  // two blocks of four

class FakeStream final : public PushStream {
 public:
  void Proceed() override { ++proceeded; }
  void End(const absl::Status& status) override { end = status; }
  int proceeded = 0;
  std::optional<absl::Status> end;
};

class ReceiverTest : public ::testing::Test {
 protected:
  ReceiverTest() {
    runner_.model = 11;
    runner_.tokenizer = 12;
    runner_.numerics = "f32/kv-f32/r1";
    runner_.logits_digest = 13;
    Receive();
  }

  // What runner_ says now, of this storage.
  void Receive() {
    runner_.layout = storage_->layout();
    receiver_.emplace(wire::ToProto(runner_), kVocabulary, *storage_, clock_,
                      [this](TransferEvent event) {
                        if (on_event_) on_event_(event);
                        events_.push_back(std::move(event));
                      });
  }

  Expectation Expected(uint32_t attempt = 1) {
    return {.uuid = "u", .attempt = attempt, .owner = 42, .token_count = kTokens, .ids_digest = 99};
  }

  Manifest FittingManifest(uint32_t attempt = 1) {
    Manifest manifest;
    manifest.set_uuid("u");
    manifest.set_attempt(attempt);
    *manifest.mutable_fingerprint() = wire::ToProto(runner_);
    manifest.set_token_count(kTokens);
    manifest.set_ids_digest(99);
    manifest.set_wire_version(wire::kWireVersion);
    return manifest;
  }

  // `count` blocks of one layer, every byte of block b and layer l is 10 * b + l.
  Frame FrameOf(uint32_t first_block, uint32_t count, uint32_t layer) {
    Frame frame;
    frame.set_first_block(first_block);
    frame.set_block_count(count);
    frame.set_layer(layer);
    for (uint32_t block = first_block; block < first_block + count; ++block) {
      frame.mutable_data()->append(layout_.piece_bytes(), static_cast<char>(10 * block + layer));
    }
    Sign(frame);
    return frame;
  }

  static void Sign(Frame& frame) {
    frame.set_crc32c(wire::Crc32cOf(frame, std::as_bytes(std::span(frame.data()))));
  }

  static void Sign(Commit& commit) { commit.set_crc32c(wire::Crc32cOf(commit, "u", 1)); }

  Commit FullCommit() {
    Commit commit;
    commit.set_kv_bytes(2 * layout_.block_bytes());
    commit.add_first_tokens()->mutable_token()->set_id(5);
    Sign(commit);
    return commit;
  }

  // A transfer that has its blocks, 3 and 1.
  std::shared_ptr<Transfer> Bound() {
    std::shared_ptr<Transfer> transfer = receiver_->Expect(Expected());
    EXPECT_TRUE(transfer->Begin(FittingManifest(), stream_).ok());
    transfer->Bind(blocks_);
    EXPECT_EQ(stream_->proceeded, 1);
    return transfer;
  }

  void SendAll(Transfer& transfer) {
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      const absl::Status taken = transfer.Take(FrameOf(0, 2, layer));
      EXPECT_TRUE(taken.ok()) << taken;
    }
  }

  template <typename T>
  int Count() const {
    return std::ranges::count_if(events_,
                                 [](const auto& e) { return std::holds_alternative<T>(e); });
  }

  const kv::KvLayout layout_{.block_tokens = 4, .layers = kLayers, .kv_heads = 1, .head_dim = 2};
  const std::vector<kv::BlockId> blocks_ = {3, 1};
  std::unique_ptr<kv::KvStorage> storage_ = *kv::KvStorage::Create(layout_, 4);
  testing::FakeClock clock_;
  engine::RunnerFingerprint runner_;
  std::vector<TransferEvent> events_;
  std::function<void(const TransferEvent&)> on_event_;
  std::optional<Receiver> receiver_;
  std::shared_ptr<FakeStream> stream_ = std::make_shared<FakeStream>();
};

}  // namespace setu::kv_transfer

#endif  // SETU_TESTS_COMMON_KV_TRANSFER_RECEIVER_FIXTURE_H_
