// SPDX-License-Identifier: Apache-2.0
#include "common/worker/prompt_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "common/kv/block_pool.h"

namespace setu::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using std::chrono_literals::operator""s;

constexpr int32_t kPlenty = 1000;  // free blocks
constexpr TimePoint kStart{};

MATCHER_P4(IsChunk, id, start, tokens, last, "") {
  return arg.id == static_cast<PromptId>(id) && arg.start == start && arg.tokens == tokens &&
         arg.last == last;
}

ChunkLimits Limits(int32_t chunk_tokens) {
  return {.chunk_tokens = chunk_tokens, .block_tokens = 16, .chunks = 4, .age_limit = 5s};
}

Arrival New(PromptId id, int32_t tokens, TimePoint arrived = kStart) {
  return {.id = id, .tokens = tokens, .resumed = false, .arrived = arrived};
}

Arrival Resumed(PromptId id, int32_t tokens) {
  return {.id = id, .tokens = tokens, .resumed = true, .arrived = kStart};
}

TEST(PromptSchedulerTest, CutsALongPromptAtBlocks) {
  PromptScheduler scheduler(Limits(70));  // 64 in whole blocks
  scheduler.Add(New(1, 150));
  EXPECT_EQ(scheduler.tokens_left(), 150);
  EXPECT_THAT(scheduler.Next(kStart, kPlenty), ElementsAre(IsChunk(1, 0, 64, false)));
  EXPECT_THAT(scheduler.Next(kStart, 0), ElementsAre(IsChunk(1, 64, 64, false)));
  EXPECT_EQ(scheduler.tokens_left(), 22);
  EXPECT_THAT(scheduler.Next(kStart, 0), ElementsAre(IsChunk(1, 128, 22, true)));
  EXPECT_THAT(scheduler.Next(kStart, kPlenty), IsEmpty());
}

TEST(PromptSchedulerTest, WhatIsKnownIsLeftOutUntilThePromptStarts) {
  PromptScheduler scheduler(Limits(64));
  scheduler.Add(New(1, 150));
  scheduler.Known(1, 32);
  EXPECT_EQ(scheduler.tokens_left(), 118);
  scheduler.Known(1, 16);  // a block was forgotten
  const std::vector<Chunk> first = scheduler.Next(kStart, kPlenty);
  EXPECT_THAT(first, ElementsAre(IsChunk(1, 16, 64, false)));
  EXPECT_TRUE(first.front().first);
  scheduler.Known(1, 144);
  const std::vector<Chunk> second = scheduler.Next(kStart, 0);
  EXPECT_THAT(second, ElementsAre(IsChunk(1, 80, 64, false)));
  EXPECT_FALSE(second.front().first);
}

TEST(PromptSchedulerTest, TheOneWithLeastLeftToComputeGoesFirst) {
  PromptScheduler scheduler(Limits(64));
  scheduler.Add(New(1, 150));
  scheduler.Add(New(2, 60));
  scheduler.Known(1, 144);
  EXPECT_THAT(scheduler.Next(kStart, kPlenty),
              ElementsAre(IsChunk(1, 144, 6, true), IsChunk(2, 0, 48, false)));
}

TEST(PromptSchedulerTest, AStepMayHaveLessRoom) {
  PromptScheduler scheduler(Limits(64));
  scheduler.Add(New(1, 100));
  EXPECT_THAT(scheduler.Next(kStart, kPlenty, 15), IsEmpty()) << "no block would be whole";
  EXPECT_THAT(scheduler.Next(kStart, kPlenty, 40), ElementsAre(IsChunk(1, 0, 32, false)));
  EXPECT_THAT(scheduler.Next(kStart, kPlenty, 1000), ElementsAre(IsChunk(1, 32, 64, false)));
}

TEST(PromptSchedulerTest, ShortPromptsShareAStep) {
  PromptScheduler scheduler(Limits(64));
  scheduler.Add(New(1, 100));
  scheduler.Add(New(2, 10));
  scheduler.Add(New(3, 20));
  EXPECT_THAT(scheduler.Next(kStart, kPlenty),
              ElementsAre(IsChunk(2, 0, 10, true), IsChunk(3, 0, 20, true),
                          IsChunk(1, 0, 32, false)));  // of the 34 left
}

TEST(PromptSchedulerTest, TheShortestRemainderGoesFirstAlsoAmidAnother) {
  PromptScheduler scheduler(Limits(64));
  scheduler.Add(New(1, 200));
  EXPECT_THAT(scheduler.Next(kStart, kPlenty), ElementsAre(IsChunk(1, 0, 64, false)));
  scheduler.Add(New(2, 64));
  EXPECT_THAT(scheduler.Next(kStart, kPlenty), ElementsAre(IsChunk(2, 0, 64, true)));
  scheduler.Add(New(3, 137));  // one more than prompt 1 has left
  EXPECT_THAT(scheduler.Next(kStart, kPlenty), ElementsAre(IsChunk(1, 64, 64, false)));
}

TEST(PromptSchedulerTest, ResumedGoBeforeNew) {
  PromptScheduler scheduler(Limits(64));
  scheduler.Add(New(1, 10));
  scheduler.Add(Resumed(2, 64));
  EXPECT_THAT(scheduler.Next(kStart, kPlenty), ElementsAre(IsChunk(2, 0, 64, true)));
}

TEST(PromptSchedulerTest, OldPromptsGoFirstByArrival) {
  PromptScheduler scheduler(Limits(64));
  scheduler.Add(New(1, 300, kStart));
  scheduler.Add(New(2, 200, kStart + 1s));
  scheduler.Add(New(3, 64, kStart + 4s));
  scheduler.Add(Resumed(4, 64));
  EXPECT_THAT(scheduler.Next(kStart + 4s, kPlenty), ElementsAre(IsChunk(4, 0, 64, true)));
  EXPECT_THAT(scheduler.Next(kStart + 4s, kPlenty), ElementsAre(IsChunk(3, 0, 64, true)));
  EXPECT_THAT(scheduler.Next(kStart + 4s, kPlenty), ElementsAre(IsChunk(2, 0, 64, false)));
  EXPECT_THAT(scheduler.Next(kStart + 6s, kPlenty), ElementsAre(IsChunk(1, 0, 64, false)));
}

TEST(PromptSchedulerTest, StartsOnlyWhatHasBlocksForAllOfIt) {
  PromptScheduler scheduler(Limits(64));
  scheduler.Add(New(1, 160));  // 10 blocks
  EXPECT_THAT(scheduler.Next(kStart, 9), IsEmpty());
  scheduler.Add(New(2, 170));  // 11 blocks
  EXPECT_THAT(scheduler.Next(kStart, 20), ElementsAre(IsChunk(1, 0, 64, false)));
  EXPECT_THAT(scheduler.Next(kStart, 0), ElementsAre(IsChunk(1, 64, 64, false)));
}

TEST(PromptSchedulerTest, BlocksOfOneStepAddUp) {
  PromptScheduler scheduler(Limits(64));
  for (PromptId id = 1; id <= 3; ++id) scheduler.Add(New(id, 17));  // 2 blocks each
  EXPECT_THAT(scheduler.Next(kStart, 5),
              ElementsAre(IsChunk(1, 0, 17, true), IsChunk(2, 0, 17, true)));
}

TEST(PromptSchedulerTest, SmallPromptsPassOneThatLacksBlocksUntilItIsOld) {
  PromptScheduler scheduler(Limits(64));
  scheduler.Add(New(1, 640));
  scheduler.Add(New(2, 16, kStart));
  EXPECT_THAT(scheduler.Next(kStart, 10), ElementsAre(IsChunk(2, 0, 16, true)));
  scheduler.Add(New(3, 16, kStart + 5s));
  EXPECT_THAT(scheduler.Next(kStart + 5s, 10), IsEmpty());
  EXPECT_THAT(scheduler.Next(kStart + 5s, 40), ElementsAre(IsChunk(1, 0, 64, false)));
}

TEST(PromptSchedulerTest, NobodyPassesAResumedPromptThatLacksBlocks) {
  PromptScheduler scheduler(Limits(64));
  scheduler.Add(Resumed(1, 640));
  scheduler.Add(New(2, 16));
  EXPECT_THAT(scheduler.Next(kStart, 10), IsEmpty());
}

TEST(PromptSchedulerTest, TakesAtMostItsChunksInAStep) {
  PromptScheduler scheduler(Limits(64));
  for (PromptId id = 1; id <= 6; ++id) scheduler.Add(New(id, 1));
  EXPECT_EQ(scheduler.Next(kStart, kPlenty).size(), 4u);
  EXPECT_EQ(scheduler.Next(kStart, kPlenty).size(), 2u);
}

TEST(PromptSchedulerTest, RemovedPromptsAreForgotten) {
  PromptScheduler scheduler(Limits(64));
  scheduler.Add(New(1, 100));
  scheduler.Add(New(2, 200));
  EXPECT_THAT(scheduler.Next(kStart, kPlenty), ElementsAre(IsChunk(1, 0, 64, false)));
  scheduler.Remove(1);
  scheduler.Remove(77);
  EXPECT_THAT(scheduler.Next(kStart, kPlenty), ElementsAre(IsChunk(2, 0, 64, false)));
}

// Whatever arrives: every prompt is computed once, in order, within the budgets, and none waits
// much longer than the age limit and the work before it.
TEST(PromptSchedulerTest, EveryPromptIsComputedWholeAndNobodyStarves) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    PromptScheduler scheduler(Limits(64));
    std::map<PromptId, int32_t> sizes, computed;
    int32_t free_blocks = 40;
    PromptId next = 1;
    TimePoint now = kStart;
    for (int step = 0; step < 400 || !sizes.empty(); ++step, now += 1s) {
      ASSERT_LT(step, 5000) << "seed " << seed << ": some prompt starves";
      if (step < 400 && random() % 4 == 0) {
        sizes[next] = 1 + random() % 300;
        scheduler.Add({next, sizes[next], random() % 8 == 0, now});
        ++next;
      }
      int32_t tokens = 0;
      for (const Chunk& chunk : scheduler.Next(now, free_blocks)) {
        ASSERT_EQ(chunk.start, computed[chunk.id]);
        ASSERT_EQ(chunk.start % 16, 0);
        if (chunk.first) free_blocks -= kv::BlocksFor(sizes[chunk.id], 16);
        computed[chunk.id] += chunk.tokens;
        tokens += chunk.tokens;
        ASSERT_EQ(chunk.last, computed[chunk.id] == sizes[chunk.id]);
        if (chunk.last) {
          free_blocks += kv::BlocksFor(sizes[chunk.id], 16);
          sizes.erase(chunk.id);
        }
      }
      ASSERT_LE(tokens, 64);
      ASSERT_GE(free_blocks, 0);
    }
    EXPECT_EQ(free_blocks, 40);
    EXPECT_EQ(scheduler.tokens_left(), 0);
  }
}

}  // namespace
}  // namespace setu::worker
