// SPDX-License-Identifier: Apache-2.0
#include "common/kv/kv_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/kv_place.h"

namespace setu::kv {
namespace {

constexpr KvLayout kLayout = {
    .block_tokens = 16, .layers = 3, .kv_heads = 2, .head_dim = 4, .type = kernels::KvType::kF16};

TEST(KvLayout, CountsKAndVOfEveryHeadAndToken) {
  EXPECT_EQ(kLayout.piece_bytes(), 2u * 2 * 16 * 4 * 2);
  EXPECT_EQ(kLayout.block_bytes(), 3 * kLayout.piece_bytes());
}

TEST(KvStorage, PiecesTileTheMemoryInLayerThenBlockOrder) {
  auto storage = *KvStorage::Create(kLayout, 5);
  const std::byte* expected = storage->Piece(0, 0).data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(expected) % 64, 0u);
  for (int32_t layer = 0; layer < kLayout.layers; ++layer) {
    for (BlockId block = 0; block < 5; ++block) {
      const auto piece = storage->Piece(block, layer);
      EXPECT_EQ(piece.data(), expected);
      EXPECT_EQ(piece.size(), kLayout.piece_bytes());
      expected += piece.size();
    }
  }
}

TEST(KvStorage, LayerAddressesTheSameBytesAsPieces) {
  auto storage = *KvStorage::Create(kLayout, 5);
  const kernels::KvLayer layer = storage->Layer(2);
  for (BlockId block = 0; block < 5; ++block) {
    EXPECT_EQ(layer.base + block * layer.block_stride, storage->Piece(block, 2).data());
  }
  EXPECT_EQ(layer.type, kLayout.type);
  EXPECT_EQ(layer.kv_heads, kLayout.kv_heads);
  EXPECT_EQ(layer.head_dim, kLayout.head_dim);
  EXPECT_EQ(layer.block_tokens, kLayout.block_tokens);
}

TEST(KvStorage, StartsZero) {
  auto storage = *KvStorage::Create(kLayout, 2);
  for (BlockId block = 0; block < 2; ++block) {
    for (int32_t layer = 0; layer < kLayout.layers; ++layer) {
      EXPECT_THAT(storage->Piece(block, layer), testing::Each(std::byte{0}));
    }
  }
}

TEST(KvStorage, CopyBlockCopiesEveryLayerAndNothingElse) {
  auto storage = *KvStorage::Create(kLayout, 3);
  for (int32_t layer = 0; layer < kLayout.layers; ++layer) {
    std::ranges::fill(storage->Piece(0, layer), static_cast<std::byte>(layer + 1));
    std::ranges::fill(storage->Piece(1, layer), std::byte{77});
  }
  storage->CopyBlock(0, 2);
  for (int32_t layer = 0; layer < kLayout.layers; ++layer) {
    EXPECT_THAT(storage->Piece(2, layer), testing::Each(static_cast<std::byte>(layer + 1)));
    EXPECT_THAT(storage->Piece(0, layer), testing::Each(static_cast<std::byte>(layer + 1)));
    EXPECT_THAT(storage->Piece(1, layer), testing::Each(std::byte{77}));
  }
}

TEST(ClearSlots, ZeroesTheSlotsBehindTheUsedOnesInKAndV) {
  std::vector<uint16_t> piece(kLayout.piece_bytes() / 2);
  for (size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<uint16_t>(i + 1);
  const std::vector<uint16_t> before = piece;
  ClearSlots(kLayout, 5, std::as_writable_bytes(std::span(piece)));
  for (size_t i = 0; i < piece.size(); ++i) {
    const size_t token =
        i < piece.size() / 2 ? i % 16 : i / 4 % 16;  // K [dim][token], V [token][dim]
    EXPECT_EQ(piece[i], token < 5 ? before[i] : 0) << i;
  }
}

TEST(ClearSlots, ZeroesHalvesOfPairs) {
  KvLayout layout = kLayout;
  layout.type = kernels::KvType::kBF16;
  std::vector<uint16_t> piece(layout.piece_bytes() / 2);
  for (size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<uint16_t>(i + 1);
  const std::vector<uint16_t> before = piece;
  ClearSlots(layout, 5, std::as_writable_bytes(std::span(piece)));
  for (size_t i = 0; i < piece.size(); ++i) {
    // K [dim / 2][token][2], V [token / 2][dim][2]
    const size_t token = i < piece.size() / 2 ? i / 2 % 16 : i / 8 % 8 * 2 + i % 2;
    EXPECT_EQ(piece[i], token < 5 ? before[i] : 0) << i;
  }
}

TEST(ClearSlots, LeavesWhatTheUsedSlotsHoldWhereverItLies) {
  for (const auto type : {kernels::KvType::kF16, kernels::KvType::kBF16}) {
    for (const int32_t head_dim : {3, 4}) {
      const KvLayout layout = {
          .block_tokens = 32, .layers = 1, .kv_heads = 2, .head_dim = head_dim, .type = type};
      for (int32_t used = 0; used <= layout.block_tokens; ++used) {
        std::vector<uint16_t> piece(layout.piece_bytes() / 2, 1);
        ClearSlots(layout, used, std::as_writable_bytes(std::span(piece)));
        const size_t head = piece.size() / 4;
        for (int32_t token = 0; token < layout.block_tokens; ++token) {
          for (int32_t dim = 0; dim < head_dim; ++dim) {
            const auto key = IndexOf(kernels::KeyPlace(type, head_dim, 32, token), dim);
            const auto value = IndexOf(kernels::ValuePlace(type, head_dim, token), dim);
            for (size_t part = 0; part < 4; ++part) {
              EXPECT_EQ(piece[part * head + (part < 2 ? key : value)], token < used ? 1 : 0)
                  << "used " << used << ", token " << token << ", dim " << dim;
            }
          }
        }
      }
    }
  }
}

TEST(ClearSlots, ZeroesTheScalesOfThoseSlotsToo) {
  KvLayout layout = kLayout;
  layout.type = kernels::KvType::kInt8;
  const size_t values = 16 * 4, head = values + 16 * sizeof(float);
  ASSERT_EQ(layout.piece_bytes(), 2 * 2 * head);
  std::vector<std::byte> piece(layout.piece_bytes(), std::byte{1});
  ClearSlots(layout, 5, piece);
  for (size_t i = 0; i < piece.size(); ++i) {
    const size_t in_head = i % head;
    const size_t in_values = i < piece.size() / 2 ? in_head % 16 : in_head / 4;
    const size_t token = in_head < values ? in_values : (in_head - values) / sizeof(float);
    EXPECT_EQ(piece[i], token < 5 ? std::byte{1} : std::byte{0}) << i;
  }
}

TEST(KvStorage, MemoryThatIsNotThereIsAnErrorThatNamesTheFlag) {
  KvLayout layout = kLayout;
  layout.head_dim = 1 << 20;
  layout.kv_heads = 1 << 10;
  const auto storage = KvStorage::Create(layout, std::numeric_limits<int32_t>::max());
  EXPECT_EQ(storage.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(storage.status().message(), testing::HasSubstr("--kv-memory"));
}

TEST(KvStorageDeathTest, APieceOutsideThePoolIsABug) {
  auto storage = *KvStorage::Create(kLayout, 2);
  EXPECT_DEATH(storage->Piece(2, 0), "inside the pool");
  EXPECT_DEATH(storage->Piece(0, 3), "inside the pool");
  EXPECT_DEATH(storage->Piece(-1, 0), "inside the pool");
}

}  // namespace
}  // namespace setu::kv
