// SPDX-License-Identifier: Apache-2.0
// What was computed once is found again by its ids, and changes no token.
#include <gmock/gmock.h>

#include <random>

#include "tests/services/decode/loop_fixture.h"

namespace setu::decode {
namespace {

using LoopPrefixTest = LoopTest;

// `head` and `tail` bytes, so that sequences of equal heads start alike.
wire::Sequence Shared(const std::string& uuid, int32_t head, int32_t tail, int32_t max_tokens) {
  wire::Sequence sequence = Prompt(uuid, head + tail, max_tokens);
  for (int32_t i = 0; i < head; ++i) sequence.ids[i] = test::kTinyFirstByte + i % 256;
  return sequence;
}

TEST_F(LoopPrefixTest, AKnownPromptIsHeldAndNotSent) {
  const wire::Sequence sequence = Prompt("u", 40, 8);
  const auto first = OpenAndPush(sequence);
  EXPECT_EQ(first->held, 0);
  TurnToTheEnd({first});
  EXPECT_EQ(snapshot_.blocks_held, 0);
  EXPECT_EQ(snapshot_.blocks_cached, 2);

  const auto again = Open(sequence);
  EXPECT_EQ(again->held, 2);
  EXPECT_EQ(snapshot_.blocks_held, 2);
  EXPECT_EQ(snapshot_.blocks_promised, 1) << "the half block of the prompt also takes the answer";
  EXPECT_TRUE(Push(prefill_.Compute(sequence, 1, 2)).ok());
  TurnToTheEnd({again});
  EXPECT_EQ(again->committed.front().second, runner_->storage().layout().block_bytes());
  EXPECT_EQ(again->ids[0], prefill_.Alone(sequence, 0));
  EXPECT_EQ(snapshot_.prefix_tokens_asked, 80u);
  EXPECT_EQ(snapshot_.prefix_tokens_known, 32u);
}

TEST_F(LoopPrefixTest, APromptThatIsKnownWholeNeedsACommitAlone) {
  const wire::Sequence sequence = Prompt("u", 32, 8, {0, 1});
  TurnToTheEnd({OpenAndPush(sequence)});
  const auto again = OpenAndPush(sequence);
  EXPECT_EQ(again->held, 2);
  EXPECT_EQ(again->committed.front().second, 0u);
  TurnToTheEnd({again});
  for (uint32_t choice : {0, 1}) EXPECT_EQ(again->ids[choice], prefill_.Alone(sequence, choice));
}

TEST_F(LoopPrefixTest, AnAnswerIsFoundByTheNextPromptOfItsChat) {
  const wire::Sequence first = Prompt("u", 20, 30);
  const auto stream = OpenAndPush(first);
  TurnToTheEnd({stream});
  wire::Sequence next = Prompt("v", 60, 10);
  std::copy(first.ids.begin(), first.ids.end(), next.ids.begin());
  std::copy(stream->ids[0].begin(), stream->ids[0].end(), next.ids.begin() + 20);
  const auto answer = OpenAndPush(next);
  EXPECT_EQ(answer->held, 3) << "49 of 50 tokens have KV: the last one was not computed on";
  TurnToTheEnd({answer});
  EXPECT_EQ(answer->ids[0], prefill_.Alone(next, 0));
}

TEST_F(LoopPrefixTest, OtherSaltsAndSwitchedOffWorkersFindNothing) {
  wire::Sequence sequence = Prompt("u", 40, 8);
  TurnToTheEnd({OpenAndPush(sequence)});
  sequence.cache_salt = 1;
  EXPECT_EQ(Open(sequence)->held, 0);
  streams_.clear();
  Start({.prefix_cache = false}, kBlocks);
  TurnToTheEnd({OpenAndPush(sequence)});
  EXPECT_EQ(Open(sequence)->held, 0);
}

TEST_F(LoopPrefixTest, TwinsUnderWayTogetherShareWhatTheFirstCommitted) {
  const wire::Sequence one = Prompt("a", 40, 60), two = [&] {
    wire::Sequence twin = one;
    twin.uuid = "b";
    twin.sampling.seed = 99;
    return twin;
  }();
  const auto first = Open(one), second = Open(two);
  EXPECT_EQ(second->held, 0);
  EXPECT_TRUE(Push(prefill_.Compute(one, 1)).ok());
  const int32_t before = runner_->pool().held();
  EXPECT_TRUE(Push(prefill_.Compute(two, 1)).ok());
  EXPECT_EQ(runner_->pool().held(), before + 1) << "only the half block is its own";
  TurnToTheEnd({first, second});
  EXPECT_EQ(first->ids[0], prefill_.Alone(one, 0));
  EXPECT_EQ(second->ids[0], prefill_.Alone(two, 0));
}

TEST_F(LoopPrefixTest, OnlyWhatIsNotKnownNeedsRoom) {
  Start({}, 8);
  const wire::Sequence one = Shared("a", 64, 10, 6);  // 5 blocks
  const auto first = OpenAndPush(one);
  const wire::Sequence two = Shared("b", 64, 20, 12);  // 6 blocks, of which 4 are held by the first
  const auto second = OpenAndPush(two);
  EXPECT_EQ(second->held, 4);
  const auto third = Open(Shared("c", 64, 30, 12));  // 3 more
  EXPECT_TRUE(absl::IsResourceExhausted(*third->end)) << *third->end;
  TurnToTheEnd({first, second});
  EXPECT_EQ(second->ids[0], prefill_.Alone(two, 0));
}

TEST_F(LoopPrefixTest, ARetriedTransferKeepsWhatIsHeld) {
  TurnToTheEnd({OpenAndPush(Shared("a", 64, 10, 6))});
  const wire::Sequence sequence = Shared("b", 64, 20, 12);
  const auto stream = Open(sequence);
  const Pushing pushing = Begin(prefill_.Compute(sequence, 1, 4));
  EXPECT_TRUE(pushing.stream->proceeded);
  Say(Retried{streams_.size(), 2});
  EXPECT_EQ(stream->ready, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(stream->held, 4);
  EXPECT_TRUE(Push(prefill_.Compute(sequence, 2, 4)).ok());
  TurnToTheEnd({stream});
  EXPECT_EQ(stream->ids[0], prefill_.Alone(sequence, 0));
}

TEST_F(LoopPrefixTest, APushThatLeavesOutWhatIsNotHeldIsRefused) {
  const wire::Sequence sequence = Prompt("u", 40, 8);
  Open(sequence);
  const absl::Status pushed = Push(prefill_.Compute(sequence, 1, 1));
  EXPECT_TRUE(absl::IsFailedPrecondition(pushed)) << pushed;
  EXPECT_THAT(pushed.message(), ::testing::HasSubstr("first_block"));
}

// Others are promised the bits of this worker's own path.
TEST_F(LoopPrefixTest, KvOfAnotherNumericPathIsForItsRequestAlone) {
  const wire::Sequence sequence = Prompt("u", 40, 30);
  const auto mixed = [](PushedKv kv) {
    kv.manifest.mutable_fingerprint()->set_logits_digest(1);
    kv.manifest.mutable_fingerprint()->set_allow_mixed_numerics(true);
    return kv;
  };
  const auto first = Open(sequence);
  EXPECT_TRUE(Push(mixed(prefill_.Compute(sequence, 1))).ok());
  TurnToTheEnd({first});
  EXPECT_EQ(first->ids[0].size(), 30u);
  EXPECT_EQ(snapshot_.blocks_cached, 0) << "neither the prompt's nor the answer's";

  TurnToTheEnd({OpenAndPush(sequence)});
  const auto known = Open(sequence);
  EXPECT_EQ(known->held, 2) << "our own";
  EXPECT_TRUE(Push(mixed(prefill_.Compute(sequence, 1, 2))).ok());
  TurnToTheEnd({known});
  EXPECT_EQ(known->ids[0], first->ids[0]);
}

// A small pool, much that is alike, blocks forgotten and computed anew, sequences pushed out.
TEST_F(LoopPrefixTest, NoTokenChangesUnderRandomSharing) {
  uint64_t known = 0, preempted = 0;
  for (uint32_t seed = 0; seed < 3; ++seed) {
    streams_.clear();
    Start({.grant_output_tokens = 16, .resume_watermark = 2}, 16);
    std::mt19937 random(seed);
    for (int round = 0; round < 5; ++round) {
      std::vector<wire::Sequence> sequences;
      std::vector<std::shared_ptr<RecordingStream>> streams;
      for (uint32_t i = 0; i < 1 + random() % 4; ++i) {
        const auto uuid = absl::StrCat(seed, ".", round, ".", i);
        sequences.push_back(
            Shared(uuid, 16 * (random() % 5), 1 + random() % 20, 40 + random() % 60));
        auto stream = Open(sequences.back());
        if (stream->end) {
          EXPECT_TRUE(absl::IsResourceExhausted(*stream->end)) << *stream->end;
          sequences.pop_back();
          continue;
        }
        EXPECT_TRUE(Push(prefill_.Compute(sequences.back(), 1, stream->held)).ok());
        streams.push_back(std::move(stream));
      }
      TurnToTheEnd(streams);
      for (size_t i = 0; i < streams.size(); ++i) {
        std::vector<engine::TokenId> alone = prefill_.Alone(sequences[i], 0);
        if (!streams[i]->preempted.empty()) alone.resize(streams[i]->ids[0].size());
        EXPECT_EQ(streams[i]->ids[0], alone) << "seed " << seed << " round " << round;
      }
      EXPECT_EQ(runner_->pool().held(), 0);
    }
    known += snapshot_.prefix_tokens_known;
    preempted += snapshot_.preemptions;
  }
  EXPECT_GT(known, 300u);
  EXPECT_GT(preempted, 0u);
}

}  // namespace
}  // namespace setu::decode
