// SPDX-License-Identifier: Apache-2.0
// Pushes to a peer that keeps what arrives, with shared memory or without.
#ifndef SETU_TESTS_COMMON_KV_TRANSFER_SENDER_FIXTURE_H_
#define SETU_TESTS_COMMON_KV_TRANSFER_SENDER_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/kv_transfer/sender.h"
#include "common/rpc/server.h"
#include "tests/support/fake_clock.h"
#include "tests/support/kv_peer.h"

namespace setu::kv_transfer {

inline constexpr kv::KvLayout kLayout = {
    .block_tokens = 16, .layers = 3, .kv_heads = 2, .head_dim = 8, .type = kernels::KvType::kF16};

// Tells how often it was looked at.
class LookedAtClock final : public Clock {
 public:
  TimePoint Now() const override {
    ++looks_;
    return hands_.Now();
  }
  void Advance(Duration by) { hands_.Advance(by); }
  int looks() const { return looks_; }

 private:
  setu::testing::FakeClock hands_;
  mutable std::atomic<int> looks_ = 0;
};

class SenderTest : public ::testing::Test {
 protected:
  void SetUp() override { Use(kLayout, 64); }

  // A push that is over keeps no slot, however it ended.
  void TearDown() override {
    if (staging_ != nullptr) {
      EXPECT_EQ(staging_->free(), slots_);
    }
  }

  // Before a push: memory with so many slots.
  void Share(size_t slots) {
    slots_ = slots;
    const size_t bytes = SlotBytes(storage_->layout());
    staging_ = *SharedStaging::Create(slots * bytes, bytes);
  }

  void Use(const kv::KvLayout& layout, int32_t blocks) {
    auto storage = kv::KvStorage::Create(layout, blocks);
    ASSERT_TRUE(storage.ok()) << storage.status();
    storage_ = *std::move(storage);
    std::mt19937 random(1);
    for (int32_t block = 0; block < blocks; ++block) {
      for (int32_t layer = 0; layer < layout.layers; ++layer) {
        for (std::byte& byte : storage_->Piece(block, layer)) byte = std::byte(random() | 1);
      }
    }
    auto listener = rpc::Listener::Bind("--listen", "127.0.0.1:0");
    ASSERT_TRUE(listener.ok()) << listener.status();
    auto server = rpc::Server::Start({.max_receive_bytes = 64 << 20}, {&peer_},
                                     *std::move(listener), logger_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  PushPlan Plan(std::vector<kv::BlockId> blocks, int32_t tokens) {
    PushPlan plan;
    plan.uuid = "a request";
    plan.attempt = 3;
    plan.fingerprint.numerics = "test/kv-f16/r1";
    plan.fingerprint.layout = storage_->layout();
    plan.token_count = tokens;
    plan.ids_digest = 77;
    plan.blocks = std::move(blocks);
    return plan;
  }

  std::shared_ptr<Push> Start(PushPlan plan) {
    return GrpcPush::Start(server_->InProcessChannel(), *storage_, staging_.get(), std::move(plan),
                           clock_, [this](const PushResult& result) {
                             ++dones_;
                             result_.set_value(result);
                           });
  }
  PushResult Result() {
    PushResult result = result_.get_future().get();
    EXPECT_EQ(dones_, 1);
    return result;
  }

  std::string Stored(kv::BlockId block, int32_t layer) {
    const auto piece = storage_->Piece(block, layer);
    return std::string(reinterpret_cast<const char*>(piece.data()), piece.size());
  }

  NullLogger logger_;
  LookedAtClock clock_;
  test::KvPeer peer_;
  std::unique_ptr<kv::KvStorage> storage_;
  size_t slots_ = 0;
  std::unique_ptr<SharedStaging> staging_;  // none without Share
  std::unique_ptr<rpc::Server> server_;
  std::atomic<int> dones_ = 0;
  std::promise<PushResult> result_;
};

}  // namespace setu::kv_transfer

#endif  // SETU_TESTS_COMMON_KV_TRANSFER_SENDER_FIXTURE_H_
