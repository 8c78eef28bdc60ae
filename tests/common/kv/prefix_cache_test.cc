// SPDX-License-Identifier: Apache-2.0
#include "common/kv/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace setu::kv {
namespace {

constexpr int32_t kBlockTokens = 2;
using Ids = std::vector<int32_t>;

Ids Upto(const Ids& ids, int32_t blocks) {
  return {ids.begin(), ids.begin() + blocks * kBlockTokens};
}

// A pool whose blocks remember the whole prefix that was computed into them.
class Bench {
 public:
  explicit Bench(int32_t blocks, int32_t most = 1 << 20)
      : pool(blocks), cache(pool, kBlockTokens, most), bytes_(blocks) {}

  struct Sequence {
    Ids ids;
    BlockLease table;
    PrefixCache::Place place;
    int32_t known = 0;  // blocks that were found at the start
  };

  // nullopt where the pool has no room.
  std::optional<Sequence> Start(BlockHash root, const Ids& ids) {
    Sequence sequence{.ids = ids, .place = PrefixCache::Begin(root)};
    const auto blocks = BlocksFor(std::ssize(ids), kBlockTokens);
    EXPECT_EQ(cache.KnownTokens(sequence.place, ids) % kBlockTokens, 0);
    const int32_t known = cache.KnownTokens(sequence.place, ids) / kBlockTokens;
    sequence.table = cache.Find(sequence.place, ids, blocks);
    EXPECT_EQ(sequence.table.size(), known);
    sequence.known = known;
    for (int32_t i = 0; i < known; ++i) {
      EXPECT_EQ(bytes_[sequence.table.blocks()[i]], std::pair(root, Upto(ids, i + 1)));
    }
    auto rest = pool.Take(blocks - known);
    if (!rest) return std::nullopt;
    sequence.table.Append(*std::move(rest));
    return sequence;
  }

  // Computes all, and tells.
  void Compute(BlockHash root, Sequence& sequence) {
    for (int32_t i = sequence.known; i < std::ssize(sequence.ids) / kBlockTokens; ++i) {
      bytes_[sequence.table.blocks()[i]] = {root, Upto(sequence.ids, i + 1)};
    }
    cache.Add(sequence.place, sequence.ids, sequence.table.blocks());
  }

  BlockPool pool;
  PrefixCache cache;

 private:
  std::vector<std::pair<BlockHash, Ids>> bytes_;  // [pool]
};

TEST(PrefixCache, FindsWholeBlocksOfWhatWasComputed) {
  Bench bench(8);
  {
    auto first = bench.Start(1, {1, 2, 3, 4, 5});
    bench.Compute(1, *first);
  }
  EXPECT_EQ(bench.pool.free(), 8);
  EXPECT_EQ(bench.pool.cached(), 2) << "the half block is worth nothing";
  auto again = bench.Start(1, {1, 2, 3, 4, 6, 7});
  EXPECT_EQ(again->known, 2);
  EXPECT_EQ(bench.pool.held(), 3);
  EXPECT_EQ(bench.pool.cached(), 0);
  EXPECT_EQ(bench.Start(1, {1, 2, 9, 4})->known, 1);
  EXPECT_EQ(bench.Start(1, {2, 1, 3, 4})->known, 0);
  EXPECT_EQ(bench.Start(2, {1, 2, 3, 4})->known, 0) << "of another root";
}

TEST(PrefixCache, ABlockInUseIsSharedAndTheLongestUnusedIsForgottenFirst) {
  Bench bench(4);
  {
    auto a = bench.Start(1, {1, 1, 2, 2});
    bench.Compute(1, *a);
    auto b = bench.Start(1, {3, 3, 4, 4});
    bench.Compute(1, *b);
    auto shared = bench.Start(1, {1, 1, 2, 2});
    EXPECT_EQ(shared->known, 2);
    EXPECT_EQ(bench.pool.held(), 4);
  }
  // `b` went first, its end before its start.
  auto taken = bench.pool.Take(1);
  EXPECT_EQ(bench.Start(1, {3, 3})->known, 1);
  taken->Append(*bench.pool.Take(1));
  EXPECT_EQ(bench.cache.KnownTokens(PrefixCache::Begin(1), Ids{1, 1, 2, 2}), 2)
      << "the start of b was used since";
}

TEST(PrefixCache, BehindNowhereNothingBecomesKnown) {
  Bench bench(4);
  const BlockLease table = *bench.pool.Take(2);
  PrefixCache::Place place = PrefixCache::Nowhere();
  bench.cache.Add(place, Ids{1, 2, 3, 4}, table.blocks());
  EXPECT_EQ(bench.cache.known(), 0);
}

TEST(PrefixCache, KeepsNoMoreThanItMay) {
  Bench bench(8, 3);
  {
    auto a = bench.Start(1, {1, 1, 2, 2});
    bench.Compute(1, *a);
    auto b = bench.Start(1, {3, 3, 4, 4});
    bench.Compute(1, *b);
  }
  EXPECT_EQ(bench.cache.known(), 3);
  EXPECT_EQ(bench.Start(1, {3, 3, 4, 4})->known, 1);
  Bench none(8, 0);
  auto a = none.Start(1, {1, 1});
  none.Compute(1, *a);
  EXPECT_EQ(none.Start(1, {1, 1})->known, 0);
}

// Of two that compute the same, the first is found; behind the second's blocks nothing is, for
// these may go before what would follow on them.
TEST(PrefixCache, TheSecondOfTwinsAddsNothing) {
  Bench bench(8);
  auto a = bench.Start(1, {1, 1});
  auto b = bench.Start(1, {1, 1, 5, 5});
  bench.Compute(1, *a);
  bench.Compute(1, *b);
  EXPECT_EQ(bench.cache.known(), 1);
  EXPECT_EQ(b->place.blocks, 0);
  auto c = bench.Start(1, {1, 1, 5, 5});
  EXPECT_EQ(c->known, 1);
  bench.Compute(1, *c);
  EXPECT_EQ(bench.Start(1, {1, 1, 5, 5})->known, 2);
}

// Roots so near each other give one hash to two prefixes.
TEST(PrefixCache, EqualHashesAreNoProof) {
  const Ids one = {1, 5}, other = {0, 5};
  ASSERT_EQ(NextHash(1, one), NextHash(2, other));
  Bench bench(8);
  auto a = bench.Start(1, one);
  bench.Compute(1, *a);
  auto b = bench.Start(2, other);
  EXPECT_EQ(b->known, 0);
  bench.Compute(2, *b);
  EXPECT_EQ(bench.Start(2, other)->known, 0) << "the name is taken";
  EXPECT_EQ(bench.Start(1, one)->known, 1);
  EXPECT_EQ(bench.Start(1, other)->known, 0);
}

// Against what a map of all prefixes says, with few ids so that much is alike.
TEST(PrefixCache, FindsWhatIsThereAndNothingElseUnderRandomUse) {
  for (uint32_t seed = 0; seed < 200 && !::testing::Test::HasFailure(); ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t n) { return static_cast<int32_t>(random() % n); };
    Bench bench(4 + below(12));
    std::deque<std::pair<BlockHash, Bench::Sequence>> running;
    std::set<BlockHash> told;                              // as a reader of the changes knows it
    std::map<BlockHash, std::pair<BlockHash, Ids>> names;  // what each hash stands for
    for (int step = 0; step < 200; ++step) {
      const BlockHash root = RootHash({.model = static_cast<uint64_t>(below(2))});
      Ids ids(1 + below(10));
      for (int32_t& id : ids) id = below(2);
      const std::vector<BlockHash> chain = Chain(root, ids, kBlockTokens);
      for (size_t i = 0; i < chain.size(); ++i) names[chain[i]] = {root, Upto(ids, i + 1)};
      if (auto sequence = bench.Start(root, ids)) {
        running.emplace_back(root, *std::move(sequence));
        bench.Compute(root, running.back().second);
      }
      while (below(3) == 0 && !running.empty()) {
        std::swap(running[below(running.size())], running.back());
        running.pop_back();
      }
      const uint64_t version = bench.cache.version();
      for (const PrefixChange& change : bench.cache.TakeChanges()) {
        if (change.known) {
          EXPECT_TRUE(told.insert(change.hash).second);
        } else {
          EXPECT_EQ(told.erase(change.hash), 1u);
        }
      }
      EXPECT_EQ(bench.cache.version(), version);
      EXPECT_EQ(bench.cache.known(), std::ssize(told));
      EXPECT_EQ(bench.pool.held() + bench.pool.free(), bench.pool.total());
      EXPECT_LE(bench.pool.cached(), bench.cache.known());
      for (const BlockHash hash : told) {
        const auto& [of, prefix] = names.at(hash);
        EXPECT_EQ(bench.cache.KnownTokens(PrefixCache::Begin(of), prefix), std::ssize(prefix))
            << "with a block all before it is known, seed " << seed;
      }
    }
    running.clear();
    EXPECT_EQ(bench.pool.free(), bench.pool.total());
    EXPECT_EQ(bench.pool.cached(), bench.cache.known());
  }
}

}  // namespace
}  // namespace setu::kv
