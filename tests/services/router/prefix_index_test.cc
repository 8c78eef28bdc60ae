// SPDX-License-Identifier: Apache-2.0
#include "services/router/prefix_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace setu::router {
namespace {

using kv::BlockHash;
using ::testing::ElementsAre;
using worker::v1::PrefixChanges;

PrefixChanges Snapshot(const std::vector<BlockHash>& known, uint64_t until) {
  PrefixChanges changes;
  changes.set_snapshot(true);
  changes.set_since(until);
  changes.set_until(until);
  changes.mutable_known()->Add(known.begin(), known.end());
  return changes;
}

PrefixChanges Change(uint64_t since, const std::vector<BlockHash>& known,
                     const std::vector<BlockHash>& forgotten) {
  PrefixChanges changes;
  changes.set_since(since);
  changes.set_until(since + known.size() + forgotten.size());
  changes.mutable_known()->Add(known.begin(), known.end());
  changes.mutable_forgotten()->Add(forgotten.begin(), forgotten.end());
  return changes;
}

const std::vector<BlockHash> kChain = {11, 12, 13, 14};

TEST(PrefixIndex, CountsBlocksFromTheStartOfTheChain) {
  PrefixIndex index;
  PrefixIndex::Member a = index.Join(), b = index.Join(), c = index.Join();
  EXPECT_TRUE(a.Apply(Snapshot({11, 12, 14}, 5)));
  EXPECT_TRUE(b.Apply(Snapshot({12, 13}, 2)));
  EXPECT_TRUE(c.Apply(Snapshot({11, 12, 13, 14, 15}, 9)));
  EXPECT_THAT(index.Known(kChain), ElementsAre(2, 0, 4));
  EXPECT_TRUE(a.Apply(Change(5, {13}, {14})));
  EXPECT_TRUE(c.Apply(Change(9, {}, {11})));
  EXPECT_THAT(index.Known(kChain), ElementsAre(3, 0, 0));
  EXPECT_THAT(index.Known({}), ElementsAre(0, 0, 0));
}

TEST(PrefixIndex, MissingChangesForgetAllUntilASnapshot) {
  PrefixIndex index;
  PrefixIndex::Member a = index.Join();
  EXPECT_TRUE(a.Apply(Snapshot({11, 12}, 5)));
  EXPECT_FALSE(a.Apply(Change(6, {13}, {})));
  EXPECT_THAT(index.Known(kChain), ElementsAre(0));
  EXPECT_EQ(index.blocks(), 0u);
  EXPECT_FALSE(a.Apply(Change(7, {11}, {})));
  EXPECT_TRUE(a.Apply(Snapshot({11}, 8)));
  EXPECT_TRUE(a.Apply(Change(8, {12}, {})));
  EXPECT_THAT(index.Known(kChain), ElementsAre(2));
}

TEST(PrefixIndex, WhoLeavesTakesItsBlocksAlongAndItsSlotIsUsedAgain) {
  PrefixIndex index;
  PrefixIndex::Member a = index.Join();
  {
    PrefixIndex::Member b = index.Join();
    EXPECT_TRUE(a.Apply(Snapshot({11}, 1)));
    EXPECT_TRUE(b.Apply(Snapshot({11, 12}, 2)));
    EXPECT_EQ(index.blocks(), 2u);
  }
  EXPECT_EQ(index.blocks(), 1u);
  PrefixIndex::Member c = index.Join();
  EXPECT_EQ(c.slot(), 1u);
  EXPECT_FALSE(c.Apply(Change(2, {12}, {}))) << "another worker's past is not its own";
  EXPECT_THAT(index.Known(kChain), ElementsAre(1, 0));
  a = {};
  EXPECT_EQ(index.blocks(), 0u);
}

// More members than a word has bits, against a set for each.
TEST(PrefixIndex, AgreesWithASetForEachMember) {
  std::mt19937 random(1);
  PrefixIndex index;
  std::vector<PrefixIndex::Member> members;
  std::vector<std::set<BlockHash>> known(150);
  std::vector<uint64_t> at(known.size());
  for (size_t m = 0; m < known.size(); ++m) {
    members.push_back(index.Join());
    EXPECT_TRUE(members[m].Apply(Snapshot({}, 0)));
  }
  std::vector<BlockHash> chain(12);
  for (BlockHash& hash : chain) hash = random();
  for (int round = 0; round < 3000; ++round) {
    const size_t m = random() % members.size();
    std::vector<BlockHash> added, gone;
    for (const BlockHash hash : chain) {
      if (random() % 4 == 0 && known[m].insert(hash).second) {
        added.push_back(hash);
      } else if (random() % 8 == 0 && known[m].contains(hash) &&
                 std::ranges::find(added, hash) == added.end()) {
        known[m].erase(hash);
        gone.push_back(hash);
      }
    }
    EXPECT_TRUE(members[m].Apply(Change(at[m], added, gone)));
    at[m] += added.size() + gone.size();
    if (round % 100 != 0) continue;
    const std::vector<int32_t> got = index.Known(chain);
    for (size_t i = 0; i < known.size(); ++i) {
      const auto first_gap =
          std::ranges::find_if(chain, [&](BlockHash hash) { return !known[i].contains(hash); });
      EXPECT_EQ(got[i], first_gap - chain.begin()) << "member " << i;
    }
  }
}

}  // namespace
}  // namespace setu::router
