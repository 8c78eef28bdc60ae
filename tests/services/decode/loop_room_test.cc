// SPDX-License-Identifier: Apache-2.0
// Too little room, and readers that are too slow.
#include <gmock/gmock.h>

#include <chrono>

#include "tests/services/decode/loop_fixture.h"

namespace setu::decode {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using LoopRoomTest = LoopTest;

// What a router does with a sequence that lost its place.
wire::Sequence Resumed(wire::Sequence sequence, const std::vector<engine::TokenId>& ids) {
  sequence.ids.insert(sequence.ids.end(), ids.begin(), ids.end());
  sequence.uuid += "'";
  return sequence;
}

TEST_F(LoopRoomTest, RefusesWhatDoesNotFitNowAndWhatNeverFits) {
  Start({.max_running = 2}, 8);
  const auto first = Open(Prompt("u", 80, 16));  // 6 of 8 blocks
  const auto second = Open(Prompt("v", 40, 16));
  EXPECT_TRUE(absl::IsResourceExhausted(*second->end)) << *second->end;
  const auto never = Open(Prompt("w", 100, 29));
  EXPECT_TRUE(absl::IsInvalidArgument(*never->end)) << *never->end;
  EXPECT_THAT(never->end->message(), HasSubstr("129"));
  EXPECT_THAT(never->end->message(), HasSubstr("128"));
  Open(Prompt("x", 2, 2));
  EXPECT_TRUE(absl::IsResourceExhausted(*Open(Prompt("y", 2, 2))->end)) << "two run already";
  EXPECT_EQ(snapshot_.refused_full, 2u);
  EXPECT_EQ(snapshot_.refused_invalid, 1u);
  EXPECT_EQ(snapshot_.admitted, 2u);
}

TEST_F(LoopRoomTest, PreemptsTheYoungestWhichResumesWithTheSameTokens) {
  Start({.grant_output_tokens = 8, .resume_watermark = 2}, 12);
  std::vector<wire::Sequence> sequences;
  std::vector<std::shared_ptr<RecordingStream>> streams;
  for (int i = 0; i < 3; ++i) {
    sequences.push_back(Prompt(absl::StrCat("u", i), 30 + i, 90));  // each grows to 8 blocks
    streams.push_back(OpenAndPush(sequences[i]));
  }
  TurnWhile([&] { return !streams[0]->end.has_value(); });
  EXPECT_THAT(streams[0]->preempted, IsEmpty()) << "the oldest always gets on";
  EXPECT_THAT(streams[2]->preempted, ElementsAre(0));
  EXPECT_TRUE(streams[2]->end->ok());
  EXPECT_EQ(streams[0]->ids[0], prefill_.Alone(sequences[0], 0));
  for (int i = 1; i < 3; ++i) {
    TurnWhile([&] { return !streams[i]->end.has_value(); });
    std::vector<engine::TokenId> ids = streams[i]->ids[0];
    while (!streams[i]->ended.contains(0)) {
      const wire::Sequence resumed = Resumed(sequences[i], ids);
      streams[i] = OpenAndPush(resumed);
      TurnToTheEnd({streams[i]});
      ids.insert(ids.end(), streams[i]->ids[0].begin(), streams[i]->ids[0].end());
    }
    EXPECT_EQ(ids, prefill_.Alone(sequences[i], 0)) << i;
  }
  EXPECT_GE(snapshot_.preemptions, 1u);
}

TEST_F(LoopRoomTest, WhoIsPromisedAllRunsToItsEndBesideTheOldest) {
  Start({.grant_output_tokens = 8, .resume_watermark = 0}, 12);
  const wire::Sequence oldest = Prompt("u", 30, 90), safe = Prompt("v", 31, 60);
  const auto first = OpenAndPush(oldest);
  const auto stream = Open(safe, 1, /*prefill_here=*/false, /*promise_all=*/true);
  EXPECT_TRUE(Push(prefill_.Compute(safe, 1, stream->held)).ok());
  TurnToTheEnd({first, stream});
  EXPECT_THAT(stream->preempted, IsEmpty());
  EXPECT_EQ(stream->ids[0], prefill_.Alone(safe, 0));
  EXPECT_EQ(first->ids[0], prefill_.Alone(oldest, 0));
}

TEST_F(LoopRoomTest, OneChoiceOfSeveralMayBePreempted) {
  Start({.grant_output_tokens = 1, .resume_watermark = 0}, 8);
  const wire::Sequence sequence = Prompt("u", 16, 80, {0, 1});
  const auto stream = OpenAndPush(sequence);
  TurnToTheEnd({stream});
  EXPECT_THAT(stream->preempted, ElementsAre(1));
  EXPECT_EQ(stream->ids[0], prefill_.Alone(sequence, 0));
  EXPECT_FALSE(stream->ended.contains(1));
}

TEST_F(LoopRoomTest, AResumedSequenceNeedsTheWatermark) {
  Start({.grant_output_tokens = 16, .resume_watermark = 3}, 8);
  const auto first = Open(Prompt("u", 32, 16));  // 3 of 8
  wire::Sequence sequence = Prompt("v", 32, 16);
  sequence.ids.push_back(5);
  const auto refused = Open(sequence);
  EXPECT_TRUE(absl::IsResourceExhausted(*refused->end)) << *refused->end;
  sequence.ids.pop_back();
  EXPECT_FALSE(Open(sequence)->end.has_value()) << "a new one needs none";
}

TEST_F(LoopRoomTest, AChoiceWhoseReaderIsBehindIsSkippedUntilItCatchesUp) {
  Start({.unsent_tokens = 5}, kBlocks);
  const wire::Sequence slow = Prompt("u", 9, 12), quick = Prompt("v", 9, 12);
  const auto slow_stream = OpenAndPush(slow), quick_stream = OpenAndPush(quick);
  for (uint32_t next = 1; !quick_stream->end; ++next) Say(TokensDelivered{2, 0, next});
  EXPECT_EQ(quick_stream->ids[0], prefill_.Alone(quick, 0));
  EXPECT_EQ(slow_stream->ids[0].size(), 5u);
  EXPECT_FALSE(loop_->Turn()) << "nothing to do but wait";
  Say(TokensDelivered{1, 0, 2});
  TurnWhile([&] { return loop_->Turn(); });
  EXPECT_EQ(slow_stream->ids[0].size(), 7u);
  Say(TokensDelivered{1, 0, 4000});  // more than there is counts as all
  TurnWhile([&] { return loop_->Turn(); });
  EXPECT_EQ(slow_stream->ids[0].size(), 12u);
  EXPECT_EQ(slow_stream->ids[0], prefill_.Alone(slow, 0));
}

TEST_F(LoopRoomTest, AReaderThatStallsTooLongIsAborted) {
  Start({.unsent_tokens = 5}, kBlocks);
  const auto stalled = OpenAndPush(Prompt("u", 9, 50));
  TurnWhile([&] { return loop_->Turn(); });
  EXPECT_EQ(loop_->next_timer(), clock_.Now() + std::chrono::seconds(30));
  clock_.Advance(std::chrono::seconds(29));
  loop_->Turn();
  EXPECT_FALSE(stalled->end.has_value());
  EXPECT_EQ(snapshot_.blocks_held, 1);
  Say(TokensDelivered{1, 0, 1});  // moves on by one: the time starts anew
  TurnWhile([&] { return loop_->Turn(); });
  clock_.Advance(std::chrono::seconds(29));
  loop_->Turn();
  EXPECT_FALSE(stalled->end.has_value());
  clock_.Advance(std::chrono::seconds(1));
  loop_->Turn();
  EXPECT_TRUE(absl::IsAborted(*stalled->end)) << *stalled->end;
  EXPECT_EQ(snapshot_.failed, 1u);
}

}  // namespace
}  // namespace setu::decode
