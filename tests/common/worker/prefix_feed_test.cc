// SPDX-License-Identifier: Apache-2.0
#include "common/worker/prefix_feed.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace setu::worker {
namespace {

using kv::BlockHash;

// A router's side of it.
struct Reader {
  std::optional<uint64_t> cursor;
  uint64_t at = 0;
  std::set<BlockHash> known;
  int snapshots = 0;

  void Read(const PrefixFeed& feed) {
    const v1::PrefixChanges changes = feed.Since(cursor);
    if (changes.snapshot()) {
      known.clear();
      ++snapshots;
    } else {
      EXPECT_EQ(changes.since(), at) << "nothing is left out";
    }
    known.insert(changes.known().begin(), changes.known().end());
    for (BlockHash hash : changes.forgotten()) known.erase(hash);
    at = changes.until();
  }
};

TEST(PrefixFeed, StartsWithASnapshotAndGoesOnWithChanges) {
  PrefixFeed feed;
  feed.Append(std::vector<kv::PrefixChange>{{1, true}, {2, true}, {1, false}});
  std::optional<uint64_t> cursor;
  const v1::PrefixChanges first = feed.Since(cursor);
  EXPECT_TRUE(first.snapshot());
  ASSERT_EQ(first.known_size(), 1);
  EXPECT_EQ(first.known(0), 2u);
  EXPECT_EQ(first.until(), 3u);
  EXPECT_EQ(cursor, 3u);

  feed.Append(
      std::vector<kv::PrefixChange>{{3, true}, {2, false}, {2, true}, {4, true}, {4, false}});
  const v1::PrefixChanges next = feed.Since(cursor);
  EXPECT_FALSE(next.snapshot());
  EXPECT_EQ(next.since(), 3u);
  EXPECT_EQ(next.until(), 8u);
  EXPECT_EQ(next.known_size(), 2) << "2 came back, 3 is new";
  EXPECT_EQ(next.forgotten_size(), 1) << "4 was never told";
}

TEST(PrefixFeed, AReaderTooFarBehindGetsASnapshot) {
  PrefixFeed feed;
  std::optional<uint64_t> cursor;
  feed.Since(cursor);
  std::vector<kv::PrefixChange> changes(PrefixFeed::kKept);
  for (size_t i = 0; i < changes.size(); ++i) changes[i] = {i, true};
  feed.Append(changes);
  std::optional<uint64_t> just = cursor;
  EXPECT_FALSE(feed.Since(just).snapshot());
  feed.Append(std::vector<kv::PrefixChange>{{1u << 20, true}});
  EXPECT_TRUE(feed.Since(cursor).snapshot());
}

TEST(PrefixFeed, ReadersOfAnyPaceKnowTheSame) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    PrefixFeed feed;
    std::set<BlockHash> known;
    std::vector<Reader> readers(3);
    for (int step = 0; step < 300; ++step) {
      std::vector<kv::PrefixChange> changes;
      for (uint32_t i = random() % (seed == 0 ? 400 : 20); i > 0; --i) {
        const BlockHash hash = random() % 50;
        const bool is_new = known.insert(hash).second;
        if (!is_new) known.erase(hash);
        changes.push_back({hash, is_new});
      }
      feed.Append(changes);
      for (size_t r = 0; r < readers.size(); ++r) {
        if (random() % (1 + 10 * r * r) == 0) readers[r].Read(feed);
      }
    }
    for (Reader& reader : readers) {
      reader.Read(feed);
      EXPECT_EQ(reader.known, known);
      EXPECT_GE(reader.snapshots, 1);
    }
  }
}

}  // namespace
}  // namespace setu::worker
