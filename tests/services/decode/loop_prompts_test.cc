// SPDX-License-Identifier: Apache-2.0
// Prompts that are computed here, beside the batch.
#include <gmock/gmock.h>

#include "tests/services/decode/loop_fixture.h"

namespace setu::decode {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoopPromptsTest : public LoopTest {
 protected:
  std::shared_ptr<RecordingStream> OpenHere(const wire::Sequence& sequence) {
    return Open(sequence, 1, /*prefill_here=*/true);
  }
};

TEST_F(LoopPromptsTest, TheTokensAreThoseOfAPromptThatWasSent) {
  for (const int32_t chunk : {16, 32, 128}) {
    Start({.chunk_tokens = chunk}, kBlocks);
    for (const int32_t tokens : {1, 15, 16, 17, 32, 100}) {
      wire::Sequence sequence = Prompt("u", tokens, 20, {0, 1, 2});
      sequence.sampling.temperature = 1.0f;
      const auto stream = OpenHere(sequence);
      EXPECT_THAT(stream->ready, ElementsAre(1));
      TurnToTheEnd({stream});
      EXPECT_TRUE(stream->end->ok()) << *stream->end;
      ASSERT_EQ(stream->committed.size(), 1u);
      EXPECT_EQ(stream->committed.front().second, 0u) << "nothing was sent";
      for (uint32_t choice : sequence.choices) {
        EXPECT_EQ(stream->ids[choice], prefill_.Alone(sequence, choice)) << tokens << "/" << chunk;
      }
    }
  }
}

TEST_F(LoopPromptsTest, RunningSequencesGetATokenWithEveryChunk) {
  Start({.chunk_tokens = 16}, kBlocks);
  const wire::Sequence running = Prompt("a", 10, 60);
  const auto first = OpenAndPush(running);
  const wire::Sequence prompt = Prompt("b", 150, 5);
  const auto second = OpenHere(prompt);
  const size_t before = first->ids[0].size();
  const uint64_t steps = snapshot_.steps;
  TurnWhile([&] { return second->committed.empty(); });
  EXPECT_EQ(snapshot_.steps - steps, 9u) << "150 tokens are ten chunks, one was with the Open";
  EXPECT_EQ(first->ids[0].size() - before, 9u);
  EXPECT_EQ(snapshot_.prompt_tokens, 150u);
  TurnToTheEnd({first, second});
  EXPECT_EQ(first->ids[0], prefill_.Alone(running, 0));
  EXPECT_EQ(second->ids[0], prefill_.Alone(prompt, 0));
}

TEST_F(LoopPromptsTest, WhatIsKnownIsNotComputed) {
  const wire::Sequence sequence = Prompt("u", 64, 8);
  TurnToTheEnd({OpenAndPush(sequence)});
  const uint64_t before = snapshot_.prompt_tokens;
  const auto stream = OpenHere(sequence);
  EXPECT_EQ(stream->held, 3) << "the last block of 64 tokens is computed again for its logits";
  TurnToTheEnd({stream});
  EXPECT_EQ(snapshot_.prompt_tokens - before, 16u);
  EXPECT_EQ(stream->ids[0], prefill_.Alone(sequence, 0));
  EXPECT_EQ(Open(sequence)->held, 4) << "and known, also for prompts that are sent";
}

TEST_F(LoopPromptsTest, SaysWhatIsLeftToCompute) {
  Start({.chunk_tokens = 32}, kBlocks);
  const auto stream = OpenHere(Prompt("u", 100, 8));
  EXPECT_EQ(snapshot_.prompts, 1);
  EXPECT_EQ(snapshot_.prompt_tokens_left, 68);
  EXPECT_GT(snapshot_.prompt_tokens_per_second, 0.0);
  TurnToTheEnd({stream});
  EXPECT_EQ(snapshot_.prompts, 0);
  EXPECT_EQ(snapshot_.prompt_tokens_left, 0);
}

TEST_F(LoopPromptsTest, CancelAtEveryChunkFreesEverything) {
  Start({.chunk_tokens = 16}, kBlocks);
  for (int turns = 0; turns < 8; ++turns) {
    SCOPED_TRACE(turns);
    wire::Sequence sequence = Prompt("u", 80, 8);
    sequence.cache_salt = turns + 1;  // nothing is known
    const auto stream = OpenHere(sequence);
    const RequestId id = streams_.size();
    for (int i = 0; i < turns; ++i) loop_->Turn();
    Say(StreamLost{id});
    EXPECT_TRUE(absl::IsCancelled(*stream->end)) << *stream->end;
    ExpectAllBack();
    EXPECT_EQ(snapshot_.prompt_tokens_left, 0);
  }
}

TEST_F(LoopPromptsTest, AResumedSequenceIsComputedToo) {
  const wire::Sequence sequence = Prompt("u", 20, 30, {2});
  const std::vector<engine::TokenId> whole = prefill_.Alone(sequence, 2);
  wire::Sequence resumed = sequence;
  resumed.ids.insert(resumed.ids.end(), whole.begin(), whole.begin() + 11);
  const auto stream = OpenHere(resumed);
  TurnToTheEnd({stream});
  EXPECT_EQ(stream->first_index[2], 11);
  EXPECT_EQ(stream->ids[2], std::vector<engine::TokenId>(whole.begin() + 11, whole.end()));
}

TEST_F(LoopPromptsTest, RefusesWhatMakesNoSense) {
  Start({.chunk_tokens = 0}, kBlocks);
  const auto off = OpenHere(Prompt("u", 20, 8));
  EXPECT_TRUE(absl::IsInvalidArgument(*off->end)) << *off->end;
  EXPECT_THAT(off->end->message(), HasSubstr("--chunk-tokens"));
  streams_.clear();
  Start({.chunk_tokens = 16}, kBlocks);
  const auto retried = OpenHere(Prompt("u", 100, 8));
  Say(Retried{streams_.size(), 2});
  EXPECT_TRUE(absl::IsInvalidArgument(*retried->end)) << *retried->end;
  const auto nothing_expected = OpenHere(Prompt("v", 100, 8));
  EXPECT_TRUE(absl::IsNotFound(Push(prefill_.Compute(Prompt("v", 100, 8), 1))));
  TurnToTheEnd({nothing_expected});
}

}  // namespace
}  // namespace setu::decode
