// SPDX-License-Identifier: Apache-2.0
#include "services/decode/grant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace setu::decode {
namespace {

using ::testing::HasSubstr;

constexpr RoomLimits kLimits{.block_tokens = 16,
                             .max_sequences = 8,
                             .max_sequence_tokens = 512,
                             .grant_output_tokens = 32,
                             .resume_watermark = 4};

class GrantTest : public ::testing::Test {
 protected:
  Grant Promised(const Demand& demand) {
    absl::StatusOr<Grant> grant = room_.Promise(demand);
    EXPECT_TRUE(grant.ok()) << grant.status();
    return grant.ok() ? *std::move(grant) : Grant();
  }

  kv::BlockPool pool_{20};
  Room room_{pool_, kLimits};
};

TEST_F(GrantTest, PromisesThePromptAndTheBudgetOfEachChoice) {
  // 40 tokens: two full blocks and a part. 32 tokens more end in the fifth block.
  const Grant one = Promised({.tokens = 40, .output_tokens = 100});
  EXPECT_EQ(one.blocks(), 5);
  // A further choice needs its own third block and two blocks of output.
  const Grant three = Promised({.tokens = 40, .output_tokens = 100, .choices = 3});
  EXPECT_EQ(three.blocks(), 3 + 3 * 2 + 2);
  EXPECT_EQ(room_.promised(), 16);
  EXPECT_EQ(room_.sequences(), 4);
  EXPECT_EQ(pool_.free(), 20) << "a promise takes no block";
}

TEST_F(GrantTest, AFullLastBlockIsSharedNotCopied) {
  const Grant grant = Promised({.tokens = 32, .output_tokens = 10, .choices = 4});
  EXPECT_EQ(grant.shape().copies, 0);
  EXPECT_EQ(grant.blocks(), 2 + 4 * 1);
}

TEST_F(GrantTest, BudgetIsAtMostWhatMayBeGenerated) {
  EXPECT_EQ(Promised({.tokens = 32, .output_tokens = 5}).blocks(), 3);
}

TEST_F(GrantTest, RefusesNowWhatOthersHoldOrWerePromised) {
  const Grant first = Promised({.tokens = 160, .output_tokens = 32});  // 12 blocks
  const absl::Status second = room_.Promise({.tokens = 120, .output_tokens = 32}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(second)) << second;
  EXPECT_THAT(second.message(), HasSubstr("needs 10 KV blocks"));
  EXPECT_THAT(second.message(), HasSubstr("8 are free"));
  EXPECT_EQ(Promised({.tokens = 96, .output_tokens = 32}).blocks(), 8) << "what is left";
}

TEST_F(GrantTest, RefusesForEverWhatCanNeverFit) {
  const absl::Status tokens = room_.Promise({.tokens = 500, .output_tokens = 13}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(tokens)) << tokens;
  EXPECT_THAT(tokens.message(), HasSubstr("513 tokens"));
  EXPECT_THAT(tokens.message(), HasSubstr("at most 512"));
  const absl::Status blocks = room_.Promise({.tokens = 400, .output_tokens = 1}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(blocks)) << blocks;
  EXPECT_THAT(blocks.message(), HasSubstr("26 KV blocks"));
  EXPECT_THAT(blocks.message(), HasSubstr("has 20"));
  const absl::Status choices =
      room_.Promise({.tokens = 1, .output_tokens = 1, .choices = 9}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(choices)) << choices;
  EXPECT_EQ(room_.promised(), 0);
}

TEST_F(GrantTest, RefusesMoreSequencesThanMayRun) {
  const Grant eight = Promised({.tokens = 16, .output_tokens = 1, .choices = 8});
  EXPECT_TRUE(absl::IsResourceExhausted(room_.Promise({.tokens = 1, .output_tokens = 1}).status()));
}

TEST_F(GrantTest, AResumedSequenceLeavesTheWatermark) {
  const Grant other = Promised({.tokens = 160, .output_tokens = 32});       // leaves 8
  const Demand demand{.tokens = 64, .output_tokens = 16, .resumed = true};  // 5, and 4 to spare
  EXPECT_TRUE(absl::IsResourceExhausted(room_.Promise(demand).status()));
  EXPECT_EQ(Promised({.tokens = 48, .output_tokens = 16, .resumed = true}).blocks(), 4);
}

TEST_F(GrantTest, AllOutputIsPromisedWhereItIsDemanded) {
  EXPECT_EQ(Promised({.tokens = 16, .output_tokens = 160}).blocks(), 3);
  const Grant all = Promised({.tokens = 16, .output_tokens = 160, .all_output = true});
  EXPECT_EQ(all.blocks(), 11);
  EXPECT_TRUE(all.shape().all_output);
}

TEST_F(GrantTest, AnIdlePoolTakesWhateverFits) {
  EXPECT_EQ(Promised({.tokens = 300, .output_tokens = 20, .resumed = true}).blocks(), 20);
}

TEST_F(GrantTest, TakenBlocksAreHeldAndCanBePutBack) {
  Grant grant = Promised({.tokens = 40, .output_tokens = 32});
  kv::BlockLease lease = grant.Take(3);
  EXPECT_EQ(room_.promised(), 2);
  EXPECT_EQ(pool_.held(), 3);
  EXPECT_EQ(room_.unpromised(), 15);
  grant.PutBack(std::move(lease));
  EXPECT_EQ(room_.promised(), 5);
  EXPECT_EQ(pool_.held(), 0);
}

TEST_F(GrantTest, PartsGiveThemselvesBack) {
  Grant grant = Promised({.tokens = 16, .output_tokens = 16, .choices = 2});
  {
    const Grant part = grant.Split(1);
    EXPECT_EQ(part.blocks(), 1);
    grant.Release();
    EXPECT_EQ(room_.promised(), 1);
    EXPECT_EQ(room_.sequences(), 1);
  }
  EXPECT_EQ(room_.promised(), 0);
  EXPECT_EQ(room_.sequences(), 0);
}

TEST_F(GrantTest, UnpromisedBlocksEndWherePromisesBegin) {
  const Grant grant = Promised({.tokens = 270, .output_tokens = 32});  // 19 of 20
  std::optional<kv::BlockLease> last = room_.TakeUnpromised();
  EXPECT_TRUE(last.has_value());
  EXPECT_FALSE(room_.TakeUnpromised().has_value());
}

}  // namespace
}  // namespace setu::decode
