// SPDX-License-Identifier: Apache-2.0
// Which tokens come out, and how a request ends.
#include "services/decode/loop.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "common/wire/checksum.h"
#include "tests/services/decode/loop_fixture.h"
#include "tests/support/wait_until.h"

namespace setu::decode {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Streams = std::vector<std::shared_ptr<RecordingStream>>;

TEST_F(LoopTest, TokensDoNotDependOnTheBatch) {
  for (const int batch : {1, 3, 16}) {
    std::vector<wire::Sequence> sequences;
    Streams streams;
    for (int i = 0; i < batch; ++i) {
      sequences.push_back(Prompt(absl::StrCat("u", i), 5 + 3 * i, 12 + i % 3));
      sequences.back().sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
      streams.push_back(OpenAndPush(sequences.back()));
    }
    TurnToTheEnd(streams);
    for (int i = 0; i < batch; ++i) {
      EXPECT_EQ(streams[i]->ids[0], prefill_.Alone(sequences[i], 0)) << i << " of " << batch;
      EXPECT_EQ(streams[i]->ended[0], engine::EndReason::kMaxTokens);
      EXPECT_TRUE(streams[i]->end->ok());
    }
  }
}

TEST_F(LoopTest, ChoicesForkFromOnePromptWithTheirOwnTokens) {
  for (const int32_t tokens : {7, 16, 33}) {  // a part, exactly one, and more than two blocks
    const wire::Sequence sequence = Prompt("u", tokens, 40, {0, 1, 2, 3});
    const auto stream = OpenAndPush(sequence);
    TurnToTheEnd({stream});
    for (uint32_t choice = 0; choice < 4; ++choice) {
      EXPECT_EQ(stream->ids[choice], prefill_.Alone(sequence, choice));
    }
    EXPECT_NE(stream->ids[0], stream->ids[1]);
    ExpectAllBack();
  }
}

TEST_F(LoopTest, AResumedSequenceGoesOnWhereItWas) {
  const wire::Sequence sequence = Prompt("u", 20, 30, {2});
  const std::vector<engine::TokenId> whole = prefill_.Alone(sequence, 2);
  for (const int generated : {1, 11, 12, 28}) {
    wire::Sequence resumed = sequence;
    resumed.ids.insert(resumed.ids.end(), whole.begin(), whole.begin() + generated);
    const auto stream = OpenAndPush(resumed);
    TurnToTheEnd({stream});
    EXPECT_EQ(stream->first_index[2], generated);
    EXPECT_EQ(stream->ids[2], std::vector<engine::TokenId>(whole.begin() + generated, whole.end()));
  }
}

TEST_F(LoopTest, AnEndIdEndsTheChoice) {
  wire::Sequence sequence = Prompt("u", 9, 100);
  const std::vector<engine::TokenId> whole = prefill_.Alone(sequence, 0);
  sequence.sampling.end_ids = {whole[7]};
  const auto first = std::ranges::find(whole, whole[7]) - whole.begin();
  const auto stream = OpenAndPush(sequence);
  TurnToTheEnd({stream});
  EXPECT_EQ(std::ssize(stream->ids[0]), first + 1);
  EXPECT_EQ(stream->ended[0], engine::EndReason::kEndId);
}

TEST_F(LoopTest, AChoiceThatItsFirstTokenEndsTakesNoStep) {
  wire::Sequence sequence = Prompt("u", 9, 5, {0, 1});
  PushedKv kv = prefill_.Compute(sequence, 1);
  kv.commit.mutable_first_tokens(0)->set_end(worker::v1::END_REASON_END_ID);
  kv.commit.set_crc32c(wire::Crc32cOf(kv.commit, sequence.uuid, 1));
  const auto stream = Open(sequence);
  EXPECT_TRUE(Push(kv).ok());
  TurnToTheEnd({stream});
  EXPECT_EQ(stream->ids[0].size(), 1u);
  EXPECT_EQ(stream->ended[0], engine::EndReason::kEndId);
  EXPECT_EQ(stream->ids[1], prefill_.Alone(sequence, 1)) << "the other goes on";
}

TEST_F(LoopTest, ARequestThatItsFirstTokensEndTakesNoStep) {
  const wire::Sequence sequence = Prompt("u", 9, 1, {0, 1});
  const auto stream = OpenAndPush(sequence);
  EXPECT_TRUE(stream->end->ok());
  EXPECT_EQ(stream->ended.size(), 2u);
  EXPECT_EQ(snapshot_.steps, 0u);
}

TEST_F(LoopTest, AStoppedChoiceLeavesTheOthers) {
  const wire::Sequence sequence = Prompt("u", 9, 20, {0, 1, 2});
  const auto stream = Open(sequence);
  Say(ChoiceStopped{1, 1});  // before its KV has come
  EXPECT_TRUE(Push(prefill_.Compute(sequence, 1)).ok());
  Say(ChoiceStopped{1, 2});
  Say(ChoiceStopped{1, 2});  // twice, and one that never was
  Say(ChoiceStopped{1, 77});
  const size_t stopped_at = stream->ids[2].size();
  TurnToTheEnd({stream});
  EXPECT_EQ(stream->ids[0], prefill_.Alone(sequence, 0));
  EXPECT_FALSE(stream->ids.contains(1));
  EXPECT_EQ(stream->ids[2].size(), stopped_at);
  EXPECT_EQ(stream->ended.size(), 1u) << "a stop is the router's own news";
}

TEST_F(LoopTest, StoppingTheLastChoiceEndsTheStream) {
  const auto stream = OpenAndPush(Prompt("u", 9, 200));
  Say(ChoiceStopped{1, 0});
  EXPECT_TRUE(stream->end->ok());
  EXPECT_EQ(snapshot_.finished, 1u);
}

TEST_F(LoopTest, ADrainingWorkerGoesOnAndRefusesNewRequests) {
  const wire::Sequence sequence = Prompt("u", 9, 20);
  const auto running = OpenAndPush(sequence), granted = Open(Prompt("v", 9, 20));
  Say(DrainAsked{});
  Say(DrainAsked{});
  EXPECT_EQ(running->draining, 1);
  EXPECT_EQ(granted->draining, 1);
  EXPECT_TRUE(snapshot_.draining);
  const auto refused = Open(Prompt("w", 9, 20));
  EXPECT_TRUE(absl::IsUnavailable(*refused->end)) << *refused->end;
  EXPECT_EQ(snapshot_.refused_draining, 1u);
  EXPECT_TRUE(Push(prefill_.Compute(Prompt("v", 9, 20), 1)).ok());
  TurnToTheEnd({running, granted});
  EXPECT_EQ(running->ids[0], prefill_.Alone(sequence, 0));
  EXPECT_EQ(granted->ids[0], prefill_.Alone(Prompt("v", 9, 20), 0));
}

TEST_F(LoopTest, StoppingEndsEveryStream) {
  const Streams streams = {OpenAndPush(Prompt("u", 9, 200)), Open(Prompt("v", 9, 20))};
  Say(StopAsked{});
  for (const auto& stream : streams) EXPECT_TRUE(absl::IsUnavailable(*stream->end));
  EXPECT_EQ(snapshot_.failed, 2u);
  EXPECT_TRUE(absl::IsUnavailable(*Open(Prompt("w", 9, 20))->end));
}

TEST_F(LoopTest, EventsOfRequestsThatAreOverAreNothing) {
  const auto stream = OpenAndPush(Prompt("u", 9, 3));
  TurnToTheEnd({stream});
  Say(Retried{1, 2});
  Say(ChoiceStopped{1, 0});
  Say(TokensDelivered{1, 0, 2});
  Say(StreamLost{1});
  Say(kv_transfer::TransferWithdrawn{1, 1});
  EXPECT_EQ(snapshot_.finished, 1u);
  EXPECT_EQ(snapshot_.cancelled, 0u);
}

// Granted, and the KV not there: it is in a prefill worker, or on its way.
TEST_F(LoopTest, IsStarvedWhileItsPromptsAreElsewhere) {
  EXPECT_EQ(snapshot_.roofline.verdict.limit, roofline::Limit::kIdle);
  const auto stream = Open(Prompt("u", 9, 4));
  EXPECT_EQ(snapshot_.roofline.verdict.limit, roofline::Limit::kStarved);
  Say(StreamLost{1});
  EXPECT_EQ(snapshot_.roofline.verdict.limit, roofline::Limit::kIdle);
}

// A probe at a start may have been made while others kept the machine busy.
TEST_F(LoopTest, ProbesItsMachineAgainWhileItIsIdle) {
  step_model_.peaks = {.bytes_per_second = 1, .operations_per_second = 1};
  Start({}, kBlocks);
  loop_->Turn();
  clock_.Advance(roofline::IdleProbe::kEvery);
  EXPECT_TRUE(test::WaitUntil(std::chrono::seconds(20), [this] {
    loop_->Turn();
    clock_.Advance(roofline::IdleProbe::kIdle);  // where another process was probing
    return snapshot_.roofline.peaks.bytes_per_second > 1;
  }));
  EXPECT_GT(snapshot_.roofline.peaks.operations_per_second, 1);
}

TEST_F(LoopTest, TheSnapshotCountsStepsAndTokens) {
  const Streams streams = {OpenAndPush(Prompt("u", 9, 4)), OpenAndPush(Prompt("v", 17, 4))};
  TurnToTheEnd(streams);
  EXPECT_EQ(snapshot_.tokens, 6u) << "the first ones were prefill's";
  EXPECT_GE(snapshot_.steps, 3u);
  EXPECT_EQ(snapshot_.kv_bytes_received, 3u * runner_->storage().layout().block_bytes());
  EXPECT_EQ(snapshot_.admitted, 2u);
  EXPECT_EQ(snapshot_.finished, 2u);
}

TEST_F(LoopTest, OnlyWhatHoldsAStepUpIsTimeBetweenSteps) {
  for (const int round : {1, 2}) {
    clock_.Advance(std::chrono::seconds(60));  // nothing to do
    const auto stream = OpenAndPush(Prompt(absl::StrCat("u", round), 9, 4));
    clock_.Advance(std::chrono::seconds(1));
    TurnToTheEnd({stream});
    EXPECT_EQ(snapshot_.between_steps, std::chrono::seconds(round));
    EXPECT_FALSE(loop_->Turn());
  }
}

}  // namespace
}  // namespace setu::decode
