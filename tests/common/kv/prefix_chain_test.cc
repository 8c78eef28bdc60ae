// SPDX-License-Identifier: Apache-2.0
#include "common/kv/prefix_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <vector>

namespace setu::kv {
namespace {

constexpr PrefixScope kScope = {.model = 7, .numerics = "f32/kv-f32/r1", .block_tokens = 4};

TEST(PrefixChain, HasOneHashForEachWholeBlock) {
  std::vector<int32_t> ids(11);
  std::iota(ids.begin(), ids.end(), 0);
  const BlockHash root = RootHash(kScope);
  const std::vector<BlockHash> chain = Chain(root, ids, 4);
  ASSERT_EQ(chain.size(), 2u);
  EXPECT_EQ(chain[0], NextHash(root, std::span(ids).first(4)));
  EXPECT_EQ(chain[1], NextHash(chain[0], std::span(ids).subspan(4, 4)));
  EXPECT_TRUE(Chain(root, std::span(ids).first(3), 4).empty());
}

TEST(PrefixChain, EveryPartOfTheScopeCounts) {
  std::set<BlockHash> roots = {RootHash(kScope)};
  PrefixScope other = kScope;
  other.model = 8;
  roots.insert(RootHash(other));
  other = kScope;
  other.numerics = "f32/kv-f16/r1";
  roots.insert(RootHash(other));
  other = kScope;
  other.block_tokens = 8;
  roots.insert(RootHash(other));
  other = kScope;
  other.salt = 1;
  roots.insert(RootHash(other));
  EXPECT_EQ(roots.size(), 5u);
}

TEST(PrefixChain, OrderPlaceAndParentCount) {
  const BlockHash root = RootHash(kScope);
  const std::vector<int32_t> zeros(64, 0);
  const std::vector<BlockHash> chain = Chain(root, zeros, 4);
  EXPECT_EQ(std::set<BlockHash>(chain.begin(), chain.end()).size(), 16u) << "equal blocks differ";
  EXPECT_NE(NextHash(root, std::vector<int32_t>{1, 2, 3, 4}),
            NextHash(root, std::vector<int32_t>{2, 1, 3, 4}));
}

// Routers and workers of different builds must find each other's blocks: the value is the protocol.
TEST(PrefixChain, ValuesNeverChange) {
  EXPECT_EQ(RootHash(kScope), 16651371954972909824u);
  EXPECT_EQ(NextHash(1, std::vector<int32_t>{1, 2, 3, 4}), 3070127433390908187u);
}

TEST(PrefixChain, HasNoCollisionInAMillionBlocks) {
  std::vector<BlockHash> seen;
  const BlockHash root = RootHash(kScope);
  for (int i = 0; i < 1'000'000; ++i) {
    seen.push_back(NextHash(root, std::array<int32_t, 4>{i & 1023, i >> 10, 0, 0}));
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

}  // namespace
}  // namespace setu::kv
