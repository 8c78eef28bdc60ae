// SPDX-License-Identifier: Apache-2.0
// What was computed once is found again by its ids, and changes no byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/services/prefill/loop_fixture.h"

namespace setu::prefill {
namespace {

using LoopPrefixTest = LoopTest;

TEST_F(LoopPrefixTest, AKnownStartIsNotComputedAndPushedAllTheSame) {
  Start({.chunk_tokens = 64});
  auto ids = RandomIds(1, 150);
  Ask(GreedySequence("a", ids)).reply->WaitForEnd();
  const uint64_t before = Idle().tokens;
  std::ranges::copy(RandomIds(2, 50), ids.begin() + 100);
  const auto sequence = GreedySequence("b", ids);
  const Record record = Ask(sequence).reply->WaitForEnd();
  EXPECT_EQ(record.known_tokens, 96);
  ExpectSame(peer_.WaitForPush(1), record, sequence);
  EXPECT_EQ(Idle().tokens - before, 54u);
  EXPECT_EQ(Idle().prefix_tokens_known, 96u);
  EXPECT_GT(Idle().blocks_cached, 0);
}

TEST_F(LoopPrefixTest, TheLastTokenIsComputedHoweverMuchIsKnown) {
  Start({});
  const auto sequence = GreedySequence("a", RandomIds(1, 64));
  Ask(sequence).reply->WaitForEnd();
  const Record record = Ask(sequence).reply->WaitForEnd();
  EXPECT_EQ(record.known_tokens, 48);
  ExpectSame(peer_.WaitForPush(1), record, sequence);
}

TEST_F(LoopPrefixTest, PromptsThatWaitFindWhatThoseBeforeThemComputed) {
  Start({.chunk_tokens = 64}, 32);
  const Asked blocker = Occupy(18 * 16);  // of 32 blocks: the three below run one after the other
  std::vector<Asked> asked;
  auto ids = RandomIds(1, 210);
  for (const char* name : {"a", "b", "c"}) {
    ids.back() = test::kTinyFirstByte + name[0];
    asked.push_back(Ask(GreedySequence(name, ids)));
  }
  std::vector<int32_t> known;
  for (const Asked& one : asked) known.push_back(one.reply->WaitForEnd().known_tokens);
  EXPECT_THAT(known, ::testing::ElementsAre(0, 208, 208));
  loop_->Cancel(*blocker.id);
}

TEST_F(LoopPrefixTest, OtherSaltsAndSwitchedOffWorkersFindNothing) {
  auto sequence = GreedySequence("a", RandomIds(1, 64));
  Start({});
  Ask(sequence).reply->WaitForEnd();
  sequence.cache_salt = 1;
  EXPECT_EQ(Ask(sequence).reply->WaitForEnd().known_tokens, 0);
  Idle();
  loop_.reset();
  Start({.prefix_cache = false});
  Ask(sequence).reply->WaitForEnd();
  EXPECT_EQ(Ask(sequence).reply->WaitForEnd().known_tokens, 0);
}

// Ten blocks for prompts of up to seven: what is kept is taken again and again.
TEST_F(LoopPrefixTest, SmallPoolsForgetAndChangeNothing) {
  Start({.chunk_tokens = 32}, 10);
  std::mt19937 random(3);
  int32_t known = 0;
  for (size_t round = 0; round < 40; ++round) {
    auto ids = RandomIds(random() % 3, 16 * (random() % 6));
    const auto tail = RandomIds(100 + round, 1 + random() % 20);
    ids.insert(ids.end(), tail.begin(), tail.end());
    const auto sequence = GreedySequence("r" + std::to_string(round), ids);
    const Record record = Ask(sequence).reply->WaitForEnd();
    ASSERT_TRUE(record.end->ok()) << *record.end;
    ExpectSame(peer_.WaitForPush(round), record, sequence);
    known += record.known_tokens;
  }
  EXPECT_GT(known, 0);
}

}  // namespace
}  // namespace setu::prefill
