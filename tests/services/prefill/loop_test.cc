// SPDX-License-Identifier: Apache-2.0
#include "services/prefill/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/services/prefill/loop_fixture.h"

namespace setu::prefill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(LoopTest, WhateverTheChunkTheSameKvAndFirstTokenGoOut) {
  for (int32_t chunk : {16, 64, 512}) {
    loop_.reset();
    Start({.chunk_tokens = chunk});
    const auto sequence = GreedySequence("u", RandomIds(chunk, 237));
    const size_t push = peer_.pushes();
    const Record record = Ask(sequence).reply->WaitForEnd();
    EXPECT_TRUE(record.end->ok()) << *record.end;
    EXPECT_TRUE(record.in_order);
    const auto got = peer_.WaitForPush(push);
    EXPECT_EQ(got.manifest.uuid(), "u");
    EXPECT_EQ(got.manifest.attempt(), 1u);
    EXPECT_EQ(got.manifest.token_count(), 237u);
    EXPECT_EQ(got.manifest.ids_digest(), wire::IdsDigest(sequence.ids));
    EXPECT_EQ(record.pushed, got.commit->kv_bytes());
    EXPECT_EQ(record.pushed, 15u * kBlockBytes);
    ExpectSame(got, record, sequence);
    EXPECT_EQ(Idle().steps, static_cast<uint64_t>((237 + chunk - 1) / chunk));
  }
}

TEST_F(LoopTest, PromptsThatShareStepsDoNotChangeEachOther) {
  Start({.chunk_tokens = 64});
  std::vector<wire::Sequence> sequences;
  std::vector<Asked> asked;
  for (uint32_t i = 0; i < 6; ++i) {
    sequences.push_back(GreedySequence("p" + std::to_string(i), RandomIds(i, 20 + 30 * i)));
    asked.push_back(Ask(sequences.back()));
  }
  std::vector<Record> records;
  for (Asked& a : asked) records.push_back(a.reply->WaitForEnd());
  for (size_t push = 0; push < 6; ++push) {
    const auto got = peer_.WaitForPush(push);
    const size_t i = got.manifest.uuid()[1] - '0';
    EXPECT_TRUE(records[i].end->ok()) << *records[i].end;
    ExpectSame(got, records[i], sequences[i]);
  }
}

TEST_F(LoopTest, WhereSharedMemoryIsNotTakenItSaysSoOnceForEachDecodeWorker) {
  staging_ = *kv_transfer::SharedStaging::Create(4 << 20, 1 << 20);
  channels_.Put("other", peer_server_.get());
  Start({});
  peer_.Misbehave({.memory_refused = "on another host"});
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const Record record =
        AskRandom(seed, 50, seed % 2 == 0 ? "decode" : "other").reply->WaitForEnd();
    EXPECT_TRUE(record.end->ok()) << *record.end;
  }
  EXPECT_EQ(Idle().kv_bytes_by_shm, 0u);
  EXPECT_THAT(log_.lines("goes by gRPC"),
              ElementsAre(AllOf(HasSubstr("KV to decode "), HasSubstr("on another host")),
                          HasSubstr("KV to other ")));
}

TEST_F(LoopTest, KvThatWentThroughSharedMemoryIsCounted) {
  staging_ = *kv_transfer::SharedStaging::Create(4 << 20, 1 << 20);
  Start({});
  const auto sequence = GreedySequence("u", RandomIds(1, 50));
  const Record record = Ask(sequence).reply->WaitForEnd();
  ExpectSame(peer_.WaitForPush(0), record, sequence);
  const Snapshot idle = Idle();
  EXPECT_EQ(idle.kv_bytes, 4u * kBlockBytes);
  EXPECT_EQ(idle.kv_bytes_by_shm, idle.kv_bytes);
  EXPECT_EQ(log_.lines("gRPC").size(), 0u);
}

// Such as a canary, after which nobody would choose this worker again.
TEST_F(LoopTest, AFewTokensDoNotTellItsRate) {
  Start({.chunk_tokens = 64});
  AskRandom(1, 20).reply->WaitForEnd();
  const Snapshot few = Idle();
  EXPECT_EQ(few.tokens, 20u);
  EXPECT_EQ(few.tokens_per_second, 0.0);
  AskRandom(2, 237).reply->WaitForEnd();
  EXPECT_GT(Idle().tokens_per_second, 0.0);
}

TEST_F(LoopTest, EveryChoiceGetsItsFirstToken) {
  Start({});
  auto sequence = GreedySequence("u", RandomIds(4, 50));
  sequence.sampling.temperature = 1.5f;
  sequence.sampling.seed = 12;
  sequence.sampling.want_logprobs = true;
  sequence.sampling.top_logprobs = 2;
  sequence.choices = {0, 1, 2, 5};
  const Record record = Ask(sequence).reply->WaitForEnd();
  const auto got = peer_.WaitForPush(0);
  ExpectSame(got, record, sequence);
  ASSERT_EQ(got.commit->first_tokens_size(), 4);
  for (int i = 0; i < 4; ++i) {
    auto committed = wire::FromProto(got.commit->first_tokens(i), test::kTinyVocabulary);
    ASSERT_TRUE(committed.ok()) << committed.status();
    EXPECT_EQ(committed->choice, sequence.choices[i]);
    EXPECT_EQ(committed->token, record.first_tokens[i].token);
  }
}

TEST_F(LoopTest, BlocksThatDecodeHoldsAreNotPushed) {
  Start({.chunk_tokens = 16});
  auto reply = std::make_shared<RecordingReply>();
  ASSERT_TRUE(loop_
                  ->Admit({.sequence = GreedySequence("u", RandomIds(1, 100)),
                           .attempt = 1,
                           .decode_address = "decode",
                           .blocks_held = 5,
                           .resumed = false,
                           .reply = reply})
                  .ok());
  EXPECT_EQ(reply->WaitForEnd().pushed, 2u * kBlockBytes);
  EXPECT_EQ(peer_.WaitForPush(0).manifest.first_block(), 5u);
}

TEST_F(LoopTest, WhatCanOnlyHaveOneTokenIsNotPushed) {
  Start({.chunk_tokens = 16});
  auto sequence = GreedySequence("u", RandomIds(4, 50));
  sequence.sampling.max_tokens = 1;
  const Record record = Ask(sequence).reply->WaitForEnd();
  EXPECT_TRUE(record.end->ok()) << *record.end;
  EXPECT_FALSE(record.pushed.has_value());
  ASSERT_EQ(record.first_tokens.size(), 1u);
  EXPECT_EQ(record.first_tokens[0].end, engine::EndReason::kMaxTokens);
  sequence.prompt_length = 40;  // a resumed one, for its eleventh token
  sequence.sampling.max_tokens = 11;
  EXPECT_TRUE(Ask(sequence, "nowhere").reply->WaitForEnd().end->ok());
  EXPECT_EQ(Idle().finished, 2u);
  const Asked stopped = Ask(sequence);
  loop_->Stop();
  EXPECT_TRUE(stopped.reply->WaitForEnd().in_order);
  EXPECT_EQ(peer_.pushes(), 0u);
}

TEST_F(LoopTest, AnEndIdAsTheFirstTokenEndsOnlyItsChoice) {
  Start({});
  auto sequence = GreedySequence("u", RandomIds(4, 50));
  const auto first = Ask(sequence).reply->WaitForEnd().first_tokens[0].token.id;
  sequence.sampling.end_ids = {first};
  sequence.choices = {0};
  const Record ended = Ask(sequence).reply->WaitForEnd();
  EXPECT_TRUE(ended.end->ok());
  EXPECT_FALSE(ended.pushed.has_value());
  EXPECT_EQ(ended.first_tokens[0].end, engine::EndReason::kEndId);
  EXPECT_FALSE(peer_.WaitForPush(1).commit.has_value());
  sequence.sampling.min_tokens = 2;  // masks the end id
  const Record masked = Ask(sequence).reply->WaitForEnd();
  EXPECT_TRUE(masked.pushed.has_value());
  EXPECT_NE(masked.first_tokens[0].token.id, first);
}

TEST_F(LoopTest, CancelWhileQueued) {
  Start({}, 32);
  Asked first = Occupy(500);
  Asked queued = AskRandom(1, 100);
  snapshots_.WaitFor([](const Snapshot& s) { return s.queued == 1; });
  loop_->Cancel(*queued.id);
  EXPECT_EQ(queued.reply->WaitForEnd().end->code(), absl::StatusCode::kCancelled);
  loop_->Cancel(*first.id);
  EXPECT_EQ(Idle().cancelled, 2u);
  EXPECT_EQ(peer_.pushes(), 1u);
}

TEST_F(LoopTest, CancelWhileComputing) {
  Start({.chunk_tokens = 16});
  peer_.Misbehave({.after = 2});  // the manifest and a frame: the prompt cannot get to its end
  Asked asked = AskRandom(1, 500);
  peer_.WaitForMessages(0, 2);
  loop_->Cancel(*asked.id);
  EXPECT_EQ(asked.reply->WaitForEnd().end->code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Idle().cancelled, 1u);
  EXPECT_TRUE(peer_.WaitForPush(0).cancelled);
}

TEST_F(LoopTest, CancelWhilePushing) {
  Start({});
  Asked asked = Occupy(100);
  loop_->Cancel(*asked.id);
  loop_->Cancel(*asked.id);  // and what is gone may be cancelled again
  const Record record = asked.reply->WaitForEnd();
  EXPECT_EQ(record.end->code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(record.pushed.has_value());
  EXPECT_FALSE(record.push_failed) << "the way there is not at fault";
  loop_->Cancel(*asked.id);
  EXPECT_EQ(Idle().cancelled, 1u);
}

TEST_F(LoopTest, CodesThatTheRouterActsOnPassThrough) {
  Start({});
  using grpc::StatusCode;
  const std::pair<StatusCode, absl::StatusCode> cases[] = {
      {StatusCode::FAILED_PRECONDITION, absl::StatusCode::kFailedPrecondition},
      {StatusCode::DATA_LOSS, absl::StatusCode::kDataLoss},
      {StatusCode::RESOURCE_EXHAUSTED, absl::StatusCode::kResourceExhausted},
      {StatusCode::NOT_FOUND, absl::StatusCode::kUnavailable},
      {StatusCode::INTERNAL, absl::StatusCode::kUnavailable},
  };
  uint32_t seed = 0;
  for (const auto& [theirs, ours] : cases) {
    peer_.Misbehave({.after = 1, .status = grpc::Status(theirs, "the peer's reason")});
    const Record record = AskRandom(++seed, 100).reply->WaitForEnd();
    EXPECT_EQ(record.end->code(), ours);
    EXPECT_THAT(std::string(record.end->message()), HasSubstr("decode: the peer's reason"));
    EXPECT_FALSE(record.pushed.has_value());
    EXPECT_TRUE(record.push_failed && record.in_order);
  }
  EXPECT_EQ(Idle().failed, 5u);
}

TEST_F(LoopTest, NobodyAtTheAddressIsUnavailable) {
  Start({});
  const Record record = AskRandom(1, 100, "nowhere").reply->WaitForEnd();
  EXPECT_EQ(record.end->code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(record.end->message()), HasSubstr("nowhere"));
  EXPECT_TRUE(record.push_failed && record.in_order);
}

TEST_F(LoopTest, APeerThatStallsIsGivenUp) {
  Start({.push_deadline = std::chrono::milliseconds(30)});
  peer_.Misbehave({.after = 1});
  const Record record = AskRandom(1, 100).reply->WaitForEnd();
  EXPECT_EQ(record.end->code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(record.end->message()), HasSubstr("30 ms"));
  EXPECT_TRUE(record.push_failed && record.in_order);
  EXPECT_EQ(record.first_tokens.size(), 1u);
  EXPECT_EQ(Idle().failed, 1u);
}

TEST_F(LoopTest, AFullQueueRefusesAtOnceAndResumedMayPass) {
  Start({.queue = 2}, 32);
  Asked first = Occupy(500);
  std::vector<Asked> queued;
  for (uint32_t i = 0; i < 2; ++i) queued.push_back(AskRandom(i, 100));
  const Asked refused = AskRandom(7, 100);
  EXPECT_EQ(refused.id.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.id.status().message()), HasSubstr("2 prompts"));
  for (uint32_t i = 2; i < 4; ++i) {
    auto sequence = GreedySequence("q" + std::to_string(i), RandomIds(i, 100));
    queued.push_back(Ask(std::move(sequence), "decode", /*resumed=*/true));
    EXPECT_TRUE(queued.back().id.ok());
  }
  EXPECT_FALSE(Ask(GreedySequence("z", RandomIds(9, 9)), "decode", true).id.ok());
  loop_->Cancel(*first.id);
  for (Asked& a : queued) EXPECT_TRUE(a.reply->WaitForEnd().end->ok());
  EXPECT_TRUE(AskRandom(8, 100).reply->WaitForEnd().end->ok());  // there is room again
  EXPECT_EQ(Idle().finished, 5u);
}

TEST_F(LoopTest, DrainFinishesWhatStartedAndRefusesTheRest) {
  Start({}, 32);
  Asked stuck = Occupy(400);
  Asked queued = AskRandom(1, 300);
  snapshots_.WaitFor([](const Snapshot& s) { return s.queued == 1; });
  peer_.Misbehave({.after = 2});
  Asked running = AskRandom(2, 20);
  running.reply->WaitForFirstTokens();
  loop_->BeginDrain();
  EXPECT_EQ(queued.reply->WaitForEnd().end->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(AskRandom(3, 20).id.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(loop_->WaitDrained(std::chrono::milliseconds(1)));  // two pushes are open
  loop_->Cancel(*stuck.id);
  loop_->Cancel(*running.id);
  EXPECT_TRUE(loop_->WaitDrained(std::chrono::seconds(20)));
}

TEST_F(LoopTest, DrainWaitsForAPushThatGoesWell) {
  Start({.chunk_tokens = 16});
  Asked asked = AskRandom(1, 400);
  peer_.WaitForMessages(0, 1);  // it has started
  loop_->BeginDrain();
  EXPECT_TRUE(loop_->WaitDrained(std::chrono::seconds(20)));
  EXPECT_TRUE(asked.reply->WaitForEnd().end->ok());
}

TEST_F(LoopTest, StopEndsEverythingOnce) {
  Start({}, 32);
  Asked stuck = Occupy(400);
  Asked queued = AskRandom(1, 300);
  loop_->Stop();
  for (Asked* asked : {&stuck, &queued}) {
    const Record record = asked->reply->WaitForEnd();
    EXPECT_EQ(record.end->code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(record.in_order && !record.push_failed);
  }
  EXPECT_FALSE(AskRandom(2, 20).id.ok());
  loop_->Stop();
}

TEST_F(LoopTest, UnderCancelsAndFaultsEveryPromptEndsOnceAndAllBlocksReturn) {
  Start({.chunk_tokens = 32, .queue = 8, .push_deadline = std::chrono::milliseconds(50)}, 40);
  std::mt19937 random(5);
  std::vector<Asked> asked;
  for (uint32_t i = 0; i < 300; ++i) {
    switch (random() % 8) {
      case 0:
        peer_.Misbehave({.after = int(random() % 6)});
        break;
      case 1:
        peer_.Misbehave({.after = int(random() % 6),
                         .status = grpc::Status(grpc::StatusCode::INTERNAL, "fault")});
        break;
      default:
        peer_.Misbehave({});
    }
    Asked a = AskRandom(i, 1 + random() % 300);
    if (a.id.ok()) asked.push_back(a);
    if (random() % 3 == 0 && !asked.empty()) {
      const Asked& victim = asked[random() % asked.size()];
      loop_->Cancel(*victim.id);
    }
    if (!a.id.ok()) asked[random() % asked.size()].reply->WaitForEnd();
  }
  for (Asked& a : asked) EXPECT_TRUE(a.reply->WaitForEnd().in_order);
  const Snapshot s = Idle();
  EXPECT_EQ(s.admitted, asked.size());
  EXPECT_GT(s.finished, 0u);
  EXPECT_GT(s.failed + s.cancelled, 0u);
}

}  // namespace
}  // namespace setu::prefill
