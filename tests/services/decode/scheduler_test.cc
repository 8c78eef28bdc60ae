// SPDX-License-Identifier: Apache-2.0
#include "services/decode/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace setu::decode {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SchedulerTest : public ::testing::Test {
 protected:
  // A sequence of `tokens` tokens of which all but the last have their KV.
  std::unique_ptr<Sequence> Joined(int32_t tokens, int32_t output_tokens, bool all_output = false) {
    absl::StatusOr<Grant> grant = room_.Promise(
        {.tokens = tokens - 1, .output_tokens = output_tokens, .all_output = all_output});
    EXPECT_TRUE(grant.ok()) << grant.status();
    auto sequence = std::make_unique<Sequence>();
    sequence->ids.resize(tokens);
    sequence->lease = grant->Take(grant->shape().prompt);
    sequence->grant = *std::move(grant);
    scheduler_.Join(*sequence);
    return sequence;
  }

  kv::BlockPool pool_{8};
  Room room_{pool_,
             {.block_tokens = 4,
              .max_sequences = 4,
              .max_sequence_tokens = 64,
              .grant_output_tokens = 4,
              .resume_watermark = 0}};
  Scheduler scheduler_{room_};
};

TEST_F(SchedulerTest, EverySequenceGetsOneTokenPerStepOldestFirst) {
  const auto a = Joined(3, 1), b = Joined(4, 1), c = Joined(2, 1);
  EXPECT_THAT(scheduler_.Next().batch, ElementsAre(a.get(), b.get(), c.get()));
}

TEST_F(SchedulerTest, APausedSequenceIsSkippedAndKeepsItsBlocks) {
  const auto a = Joined(5, 4), b = Joined(5, 4);
  a->paused_since = TimePoint();
  EXPECT_THAT(scheduler_.Next().batch, ElementsAre(b.get()));
  EXPECT_EQ(a->lease.size(), 1);
  a->paused_since.reset();
  EXPECT_THAT(scheduler_.Next().batch, ElementsAre(a.get(), b.get()));
  EXPECT_EQ(a->lease.size(), 2);
}

TEST_F(SchedulerTest, ASequenceGrowsFromItsBudgetThenFromUnpromisedBlocks) {
  const auto a = Joined(5, 4);
  EXPECT_EQ(room_.promised(), 1);
  scheduler_.Next();
  EXPECT_EQ(room_.promised(), 0);
  a->ids.resize(9);
  EXPECT_THAT(scheduler_.Next().batch, ElementsAre(a.get()));
  EXPECT_EQ(a->lease.size(), 3);
}

TEST_F(SchedulerTest, TheYoungestGivesWay) {
  const auto a = Joined(13, 4), b = Joined(9, 4);  // 4 + 3 blocks
  scheduler_.Next();
  b->ids.resize(13);
  EXPECT_THAT(scheduler_.Next().batch, ElementsAre(a.get(), b.get()));
  a->ids.resize(17);
  const Scheduler::Plan& plan = scheduler_.Next();
  EXPECT_THAT(plan.preempted, ElementsAre(b.get()));
  EXPECT_THAT(plan.batch, ElementsAre(a.get()));
  EXPECT_EQ(b->lease.size(), 0);
  EXPECT_EQ(pool_.held(), 5);
}

TEST_F(SchedulerTest, TheYoungestGivesWayToItsOwnGrowth) {
  const auto a = Joined(13, 4), b = Joined(9, 4);
  scheduler_.Next();
  a->ids.resize(17);
  b->ids.resize(13);
  const Scheduler::Plan& plan = scheduler_.Next();
  EXPECT_THAT(plan.preempted, ElementsAre(b.get()));
  EXPECT_THAT(plan.batch, ElementsAre(a.get()));
}

TEST_F(SchedulerTest, WhoWasPromisedAllOfItsBlocksGivesNoneAway) {
  const auto a = Joined(9, 4), b = Joined(5, 4), c = Joined(5, 8, /*all_output=*/true);
  scheduler_.Next();
  a->ids.resize(13);
  EXPECT_EQ(room_.unpromised(), 0);
  const Scheduler::Plan& plan = scheduler_.Next();
  EXPECT_THAT(plan.preempted, ElementsAre(b.get()));
  EXPECT_THAT(plan.batch, ElementsAre(a.get(), c.get()));
  c->ids.resize(12);
  EXPECT_THAT(scheduler_.Next().batch, ElementsAre(a.get(), c.get()));
  EXPECT_EQ(c->lease.size(), 3) << "up to its end";
}

TEST_F(SchedulerTest, WhoGivesWayToItsOwnGrowthHoldsUpNobodyBehindIt) {
  const auto a = Joined(9, 4), b = Joined(5, 4), c = Joined(5, 8, /*all_output=*/true);
  scheduler_.Next();
  b->ids.resize(9);
  const Scheduler::Plan& plan = scheduler_.Next();
  EXPECT_THAT(plan.preempted, ElementsAre(b.get()));
  EXPECT_THAT(plan.batch, ElementsAre(a.get(), c.get()));
}

TEST_F(SchedulerTest, TheOldestWaitsForThoseThatGiveNothingAway) {
  const auto a = Joined(17, 4), b = Joined(5, 8, /*all_output=*/true);
  scheduler_.Next();
  a->ids.resize(21);
  EXPECT_THAT(scheduler_.Next().batch, ElementsAre(b.get()));
  EXPECT_THAT(scheduler_.Next().preempted, IsEmpty());
  scheduler_.Leave(*b);
  b->lease.Release();
  b->grant.Release();
  EXPECT_THAT(scheduler_.Next().batch, ElementsAre(a.get()));
}

TEST_F(SchedulerTest, TheOldestIsNeverPreemptedButWaitsForPromisedBlocks) {
  const auto a = Joined(17, 4);
  absl::StatusOr<Grant> grant = room_.Promise({.tokens = 8, .output_tokens = 1});
  ASSERT_TRUE(grant.ok()) << grant.status();
  scheduler_.Next();
  a->ids.resize(21);  // all of 8 blocks are held or promised
  EXPECT_THAT(scheduler_.Next().batch, IsEmpty());
  EXPECT_THAT(scheduler_.Next().preempted, IsEmpty());
  EXPECT_EQ(a->lease.size(), 5);
  grant->Release();
  EXPECT_THAT(scheduler_.Next().batch, ElementsAre(a.get()));
}

TEST_F(SchedulerTest, WhoLeavesIsPlannedNoMore) {
  const auto a = Joined(3, 1), b = Joined(3, 1);
  scheduler_.Leave(*a);
  EXPECT_THAT(scheduler_.Next().batch, ElementsAre(b.get()));
  EXPECT_THAT(scheduler_.running(), ElementsAre(b.get()));
}

}  // namespace
}  // namespace setu::decode
