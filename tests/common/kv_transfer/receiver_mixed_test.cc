// SPDX-License-Identifier: Apache-2.0
// KV of another numeric path: taken where both workers allow it, and converted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tests/common/kv_transfer/receiver_fixture.h"

namespace setu::kv_transfer {
namespace {

using ::testing::HasSubstr;

// f16 is sent: 3 in every slot of K and V.
class MixedReceiverTest : public ReceiverTest {
 protected:
  void Receive(kernels::KvType type) {
    kv::KvLayout ours = layout_;
    ours.type = type;
    storage_ = *kv::KvStorage::Create(ours, 4);
    runner_.numerics = absl::StrCat("f32/kv-", kernels::KvTypeName(type), "/r1");
    runner_.allow_mixed_numerics = true;
    ReceiverTest::Receive();
  }
  Manifest ForeignManifest() {
    engine::RunnerFingerprint sender = runner_;
    sender.numerics = "int8-g32/kv-f16/r1";
    sender.layout.type = kernels::KvType::kF16;
    Manifest manifest = FittingManifest();
    *manifest.mutable_fingerprint() = wire::ToProto(sender);
    return manifest;
  }
  Frame ThreesOf(uint32_t layer) {
    Frame frame = FrameOf(0, 2, layer);
    for (size_t i = 0; i < frame.data().size(); i += 2) {
      (*frame.mutable_data())[i] = 0x00;
      (*frame.mutable_data())[i + 1] = 0x42;
    }
    Sign(frame);
    return frame;
  }
};

TEST_F(MixedReceiverTest, ValuesOfAnotherTypeBecomeOurs) {
  Receive(kernels::KvType::kF32);
  const std::shared_ptr<Transfer> transfer = receiver_->Expect(Expected());
  ASSERT_TRUE(transfer->Begin(ForeignManifest(), stream_).ok());
  transfer->Bind(blocks_);
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    const absl::Status taken = transfer->Take(ThreesOf(layer));
    EXPECT_TRUE(taken.ok()) << taken;
  }
  ASSERT_TRUE(transfer->Commit(FullCommit()).ok());
  for (const kv::BlockId block : blocks_) {
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      const std::span<const std::byte> piece = storage_->Piece(block, layer);
      for (size_t at = 0; at < piece.size(); at += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, &piece[at], sizeof(float));
        ASSERT_EQ(value, 3.0f);
      }
    }
  }
  const auto& committed = std::get<TransferCommitted>(events_.back());
  EXPECT_TRUE(committed.mixed);
  EXPECT_EQ(committed.kv_bytes, 2 * layout_.block_bytes()) << "as sent, in f16";
}

TEST_F(MixedReceiverTest, OurOwnPathIsNotMixed) {
  Receive(kernels::KvType::kF16);
  const std::shared_ptr<Transfer> transfer = Bound();
  SendAll(*transfer);
  ASSERT_TRUE(transfer->Commit(FullCommit()).ok());
  EXPECT_FALSE(std::get<TransferCommitted>(events_.back()).mixed);
}

TEST_F(MixedReceiverTest, BothWorkersMustAllowIt) {
  Receive(kernels::KvType::kF32);
  const auto refused = [&](const Manifest& manifest) {
    const std::shared_ptr<Transfer> transfer = receiver_->Expect(Expected());
    return transfer->Begin(manifest, stream_);
  };
  Manifest strict = ForeignManifest();
  strict.mutable_fingerprint()->set_allow_mixed_numerics(false);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused(strict)));
  EXPECT_THAT(refused(strict).message(),
              HasSubstr("numeric path is f32/kv-f32/r1 here and int8-g32/kv-f16/r1 there"));
  const Manifest manifest = ForeignManifest();
  runner_.allow_mixed_numerics = false;
  ReceiverTest::Receive();
  EXPECT_THAT(refused(manifest).message(),
              HasSubstr("numeric path is f32/kv-f32/r1 here and int8-g32/kv-f16/r1 there"));
}

TEST_F(MixedReceiverTest, ATypeThatIsNotKnownHereIsRefused) {
  Receive(kernels::KvType::kF32);
  Manifest manifest = ForeignManifest();
  manifest.mutable_fingerprint()->set_numerics("f32/kv-fp8/r1");
  const std::shared_ptr<Transfer> transfer = receiver_->Expect(Expected());
  const absl::Status refused = transfer->Begin(manifest, stream_);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("f32/kv-fp8/r1"));
}

}  // namespace
}  // namespace setu::kv_transfer
