// SPDX-License-Identifier: Apache-2.0
#include "common/kv/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace setu::kv {
namespace {

using ::testing::ElementsAre;

// What the pool must say, counted anew from the leases that are alive.
void ExpectPoolCountsLeases(const BlockPool& pool, const std::vector<BlockLease>& leases) {
  std::vector<int32_t> references(pool.total(), 0);
  for (const BlockLease& lease : leases) {
    for (BlockId block : lease.blocks()) ++references[block];
  }
  const auto unused = std::count(references.begin(), references.end(), 0);
  EXPECT_EQ(pool.free(), unused);
  EXPECT_EQ(pool.free() + pool.held(), pool.total());
  for (BlockId block = 0; block < pool.total(); ++block) {
    EXPECT_EQ(pool.references(block), references[block]) << "block " << block;
  }
}

TEST(BlockPool, CountsEveryReferenceUnderRandomTakeShareAppendRelease) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    auto below = [&random](size_t n) { return static_cast<int32_t>(random() % n); };
    BlockPool pool(1 + below(40));
    std::vector<BlockLease> leases;
    for (int step = 0; step < 100 && !HasFailure(); ++step) {
      const int action = below(5);
      if (action <= 1) {
        const int32_t count = below(8);
        const bool fits = count <= pool.free();
        auto lease = pool.Take(count);
        ASSERT_EQ(lease.has_value(), fits);
        if (lease) leases.push_back(*std::move(lease));
      } else if (!leases.empty()) {
        BlockLease& chosen = leases[below(leases.size())];
        if (action == 2) {
          leases.push_back(pool.Share(chosen.blocks().first(below(chosen.size() + 1))));
        } else if (action == 3) {
          std::swap(chosen, leases.back());
          leases.pop_back();
        } else {
          BlockLease last = std::move(leases.back());
          leases.pop_back();
          if (!leases.empty()) leases.front().Append(std::move(last));
        }
      }
      ExpectPoolCountsLeases(pool, leases);
    }
    leases.clear();
    EXPECT_EQ(pool.free(), pool.total());
  }
}

TEST(BlockPool, TakesAllOrNothing) {
  BlockPool pool(4);
  auto most = pool.Take(3);
  ASSERT_TRUE(most);
  EXPECT_FALSE(pool.Take(2));
  EXPECT_EQ(pool.free(), 1);
  EXPECT_TRUE(pool.Take(1));
  EXPECT_TRUE(pool.Take(0)) << "nothing always fits";
}

TEST(BlockPool, HandsOutLowIdsFirstAndThenTheStartOfTheLastFreed) {
  BlockPool pool(5);
  auto first = pool.Take(2);
  auto second = pool.Take(2);
  EXPECT_THAT(first->blocks(), ElementsAre(0, 1));
  EXPECT_THAT(second->blocks(), ElementsAre(2, 3));
  second->Release();
  EXPECT_THAT(pool.Take(1)->blocks(), ElementsAre(2));
}

// Freed from its end on, a sequence's start is what stays longest.
TEST(BlockPool, TakesKeptBlocksLastAndTheLongestUnusedOfThemFirst) {
  BlockPool pool(5);
  std::vector<BlockId> forgotten;
  pool.OnForget([&](BlockId block) { forgotten.push_back(block); });
  auto first = pool.Take(2);
  auto second = pool.Take(2);
  for (BlockId block : {0, 1, 2, 3}) pool.Keep(block);
  first->Release();
  second->Release();
  EXPECT_EQ(pool.free(), 5);
  EXPECT_EQ(pool.cached(), 4);
  BlockLease used = pool.Share(std::vector<BlockId>{1});
  EXPECT_EQ(pool.cached(), 3);
  used.Release();
  EXPECT_THAT(pool.Take(4)->blocks(), ElementsAre(4, 0, 3, 2));
  EXPECT_THAT(forgotten, ElementsAre(0, 3, 2));
  EXPECT_EQ(pool.cached(), 1) << "what was taken and freed again is worth nothing";
}

TEST(BlockLease, SplitGivesTheEndAway) {
  BlockPool pool(4);
  auto lease = pool.Take(4);
  BlockLease end = lease->Split(1);
  EXPECT_THAT(lease->blocks(), ElementsAre(0));
  EXPECT_THAT(end.blocks(), ElementsAre(1, 2, 3));
  lease->Release();
  EXPECT_EQ(pool.free(), 1);
}

TEST(BlockLease, ReleaseGivesBackOnce) {
  BlockPool pool(4);
  auto lease = pool.Take(4);
  lease->Release();
  lease->Release();
  EXPECT_EQ(lease->size(), 0);
  EXPECT_EQ(pool.free(), 4);
}

TEST(BlockLease, ASharedBlockIsFreeWhenItsLastLeaseIsGone) {
  BlockPool pool(4);
  auto lease = pool.Take(3);
  BlockLease shared = pool.Share(lease->blocks().first(2));
  lease->Release();
  EXPECT_EQ(pool.held(), 2);
  shared.Release();
  EXPECT_EQ(pool.held(), 0);
}

TEST(BlockLease, MovingKeepsTheBlocksHeldByOneOwner) {
  BlockPool pool(4);
  BlockLease from = *pool.Take(2);
  BlockLease to = std::move(from);
  EXPECT_THAT(to.blocks(), ElementsAre(0, 1));
  BlockLease other = *pool.Take(1);
  other = std::move(to);  // block 2 is given back, 0 and 1 change hands
  EXPECT_THAT(other.blocks(), ElementsAre(0, 1));
  EXPECT_EQ(pool.held(), 2);
  BlockLease& self = other;
  other = std::move(self);
  EXPECT_THAT(other.blocks(), ElementsAre(0, 1));
}

TEST(BlockLease, AppendKeepsTheOrderOfTheTable) {
  BlockPool pool(6);
  BlockLease table;
  table.Append(*pool.Take(2));
  table.Append(*pool.Take(1));
  table.Append(BlockLease());
  EXPECT_THAT(table.blocks(), ElementsAre(0, 1, 2));
  EXPECT_EQ(pool.held(), 3);
}

TEST(BlockPoolDeathTest, BrokenRulesStopTheProgram) {
  EXPECT_DEATH(
      {
        BlockPool pool(2);
        pool.Share(std::vector<BlockId>{1});
      },
      "only held and kept blocks are shared");
  EXPECT_DEATH(
      {
        BlockLease lease;
        BlockPool pool(2);
        lease = *pool.Take(1);
      },
      "every lease comes back");
}

TEST(BlocksFor, RoundsUp) {
  EXPECT_EQ(BlocksFor(0, 16), 0);
  EXPECT_EQ(BlocksFor(1, 16), 1);
  EXPECT_EQ(BlocksFor(16, 16), 1);
  EXPECT_EQ(BlocksFor(17, 16), 2);
}

}  // namespace
}  // namespace setu::kv
