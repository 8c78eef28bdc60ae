// SPDX-License-Identifier: Apache-2.0
// What a simulation must be before it can prove anything: the same for the same seed, and sharp.
#include "tests/simulator/simulation.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "services/router/validator.h"
#include "setu/v1/inference.pb.h"
#include "tests/services/router/byte_tokenizer.h"
#include "tests/simulator/hash_model.h"

namespace setu::simulator {
namespace {

TEST(SimulationTest, ASeedIsTheSameEachTime) {
  for (const Mode mode : {Mode::kSafety, Mode::kLiveness}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const Outcome once = Simulate(seed, mode, /*trace=*/false);
      const Outcome again = Simulate(seed, mode, /*trace=*/true);
      EXPECT_EQ(once.wrong, "");
      EXPECT_EQ(once.digest, again.digest);
      EXPECT_EQ(once.events, again.events);
      EXPECT_FALSE(again.trace.empty());
    }
  }
}

// Its answer ends on bytes that are no whole character yet when the worker waits for its reader.
TEST(SimulationTest, TokensThatAreHeldBackDoNotHoldUpTheirWorker) {
  EXPECT_EQ(Simulate(9508, Mode::kSafety, false).wrong, "");
}

TEST(SimulationTest, SeedsDiffer) {
  EXPECT_NE(Simulate(1, Mode::kSafety, false).digest, Simulate(2, Mode::kSafety, false).digest);
  EXPECT_NE(Simulate(1, Mode::kSafety, false).digest, Simulate(1, Mode::kLiveness, false).digest);
}

// A sequence of the pretending model, token by token behind a prompt that came in chunks.
class HashModelTest : public ::testing::Test {
 protected:
  static constexpr int32_t kTokens = 12;

  HashModelTest() {
    setu::v1::GenerateRequest wish;
    for (uint32_t id = 0; id < 10; ++id) wish.mutable_token_ids()->add_ids(3 * id + 1);
    wish.mutable_sampling()->set_max_tokens(kTokens);
    wish.mutable_sampling()->set_temperature(0);
    wish.mutable_stopping()->set_ignore_eos(true);
    const router::Validator validator({.name = "hash", .tokenizer = &tokenizer_},
                                      [] { return uint64_t{1}; });
    request_ = std::make_unique<router::ValidRequest>(
        *validator.Validate(wish.SerializeAsString(), {.context_length = kContext}));
  }

  engine::TokenId Step(int32_t start) {
    const engine::StepEntry entry{.ids = std::span(ids_).subspan(start),
                                  .start = start,
                                  .blocks = lease_.blocks(),
                                  .want_logits = true};
    const auto logits = runner_.Step({&entry, 1}, nullptr);
    return sampler_
        .Sample({logits.Row(0), size_t(logits.cols)}, request_->sampling(), {ids_, 10}, 0)
        .id;
  }
  // With `damage` done before the answer's fourth token.
  template <typename Damage>
  std::vector<engine::TokenId> Generate(Damage damage) {
    ids_.assign(request_->prompt_ids().begin(), request_->prompt_ids().begin() + 6);
    Step(0);
    ids_ = request_->prompt_ids();
    ids_.push_back(Step(6));
    while (std::ssize(ids_) < 10 + kTokens) {
      if (std::ssize(ids_) == 13) damage();
      ids_.push_back(Step(static_cast<int32_t>(ids_.size()) - 1));
    }
    return {ids_.begin() + 10, ids_.end()};
  }

  router::ByteTokenizer tokenizer_;
  std::unique_ptr<router::ValidRequest> request_;
  HashRunner runner_{/*blocks=*/8, /*max_rows=*/64, [](int32_t) {}};
  engine::Sampler sampler_{kVocabulary};
  kv::BlockLease lease_ = *runner_.pool().Take(6);
  std::vector<engine::TokenId> ids_;
};

TEST_F(HashModelTest, ComputesTheReferenceFromItsBlocks) {
  EXPECT_EQ(Generate([] {}), Reference(*request_, 0));
}

TEST_F(HashModelTest, AForeignBlockShowsInTheTokens) {
  for (const int32_t layer : {0, 1}) {
    EXPECT_NE(
        Generate([&] { runner_.storage().Piece(lease_.blocks()[1], layer)[5] ^= std::byte{1}; }),
        Reference(*request_, 0));
  }
}

}  // namespace
}  // namespace setu::simulator
