// SPDX-License-Identifier: Apache-2.0
#include "services/decode/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace setu::decode {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int32_t kBlockTokens = 4;

class RequestTest : public ::testing::Test {
 protected:
  RequestTest() {
    auto storage = kv::KvStorage::Create(
        {.block_tokens = kBlockTokens, .layers = 2, .kv_heads = 1, .head_dim = 2}, 16);
    EXPECT_TRUE(storage.ok()) << storage.status();
    storage_ = *std::move(storage);
  }

  // A request whose KV of `tokens` tokens is in its lease, each block filled with its place + 1.
  std::unique_ptr<Request> Received(int32_t tokens, std::vector<uint32_t> choices) {
    auto request = std::make_unique<Request>();
    request->sequence.ids.resize(tokens, 7);
    request->sequence.prompt_length = tokens;
    request->sequence.sampling.max_tokens = 5;
    request->sequence.choices = std::move(choices);
    absl::StatusOr<Grant> grant = room_.Promise(DemandOf(request->sequence));
    EXPECT_TRUE(grant.ok()) << grant.status();
    request->grant = *std::move(grant);
    request->lease = request->grant.Take(request->grant.shape().prompt);
    for (int32_t i = 0; i < request->lease.size(); ++i) Fill(request->lease.blocks()[i], i + 1);
    return request;
  }

  void Fill(kv::BlockId block, int value) {
    for (int32_t layer = 0; layer < 2; ++layer) {
      std::ranges::fill(storage_->Piece(block, layer), std::byte(value));
    }
  }

  void ExpectFilled(kv::BlockId block, int value) {
    for (int32_t layer = 0; layer < 2; ++layer) {
      EXPECT_THAT(storage_->Piece(block, layer), Each(std::byte(value)));
    }
  }

  kv::BlockPool pool_{16};
  Room room_{pool_,
             {.block_tokens = kBlockTokens,
              .max_sequences = 8,
              .max_sequence_tokens = 64,
              .grant_output_tokens = 8}};
  std::unique_ptr<kv::KvStorage> storage_;
};

TEST_F(RequestTest, ForksShareFullBlocksAndOwnTheirEnd) {
  const auto request = Received(6, {0, 3});
  Sequence& first = Fork(*request, {.choice = 0, .token = {.id = 11}}, *storage_, pool_);
  Sequence& second = Fork(*request, {.choice = 3, .token = {.id = 12}}, *storage_, pool_);
  first.lease = std::move(request->lease);
  ASSERT_EQ(second.lease.size(), 2);
  EXPECT_EQ(second.lease.blocks()[0], first.lease.blocks()[0]);
  EXPECT_NE(second.lease.blocks()[1], first.lease.blocks()[1]);
  ExpectFilled(second.lease.blocks()[1], 2);
  EXPECT_EQ(second.choice, 3u);
  EXPECT_THAT(second.ids, ElementsAre(7, 7, 7, 7, 7, 7, 12));
  EXPECT_EQ(Generated(second), 1);
  // Either writes into its own end only, and what is left of the grant is theirs.
  EXPECT_EQ(first.grant.blocks(), 1);
  EXPECT_EQ(second.grant.blocks(), 1);
  EXPECT_EQ(request->grant.blocks(), 0);
}

TEST_F(RequestTest, AFullLastBlockIsShared) {
  const auto request = Received(8, {0, 1, 2});
  for (uint32_t choice = 0; choice < 3; ++choice) {
    Fork(*request, {.choice = choice}, *storage_, pool_);
  }
  EXPECT_EQ(pool_.held(), 2);
  EXPECT_EQ(pool_.references(request->lease.blocks()[1]), 3);
}

TEST_F(RequestTest, AllComesBackInAnyOrder) {
  auto request = Received(6, {0, 1});
  Fork(*request, {.choice = 0}, *storage_, pool_).lease = pool_.Share(request->lease.blocks());
  Fork(*request, {.choice = 1}, *storage_, pool_);
  request->running.erase(request->running.begin());
  request.reset();
  EXPECT_EQ(pool_.free(), pool_.total());
  EXPECT_EQ(room_.promised(), 0);
  EXPECT_EQ(room_.sequences(), 0);
}

TEST_F(RequestTest, FirstTokensNameTheChoicesInOrder) {
  const auto request = Received(4, {2, 5});
  EXPECT_TRUE(CheckFirstTokens(*request, {{.choice = 2}, {.choice = 5}}).ok());
  const std::vector<std::vector<wire::FirstToken>> wrong = {
      {},
      {{.choice = 2}},
      {{.choice = 5}, {.choice = 2}},
      {{.choice = 2}, {.choice = 2}},
      {{.choice = 2}, {.choice = 5}, {.choice = 6}}};
  for (const auto& first_tokens : wrong) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckFirstTokens(*request, first_tokens)));
  }
}

TEST_F(RequestTest, ADemandCountsWhatIsStillToGenerate) {
  const Demand demand = DemandOf({.ids = std::vector<engine::TokenId>(9),
                                  .prompt_length = 6,
                                  .sampling = {.max_tokens = 10},
                                  .choices = {1}});
  EXPECT_EQ(demand.tokens, 9);
  EXPECT_EQ(demand.output_tokens, 7);
  EXPECT_TRUE(demand.resumed);
}

}  // namespace
}  // namespace setu::decode
