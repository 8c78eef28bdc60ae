// SPDX-License-Identifier: Apache-2.0
// Attempts, their fencing, and what becomes of blocks when a transfer goes wrong.
#include <gmock/gmock.h>

#include <chrono>

#include "common/wire/checksum.h"
#include "tests/services/decode/loop_fixture.h"

namespace setu::decode {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class LoopTransferTest : public LoopTest {
 protected:
  const wire::Sequence sequence_ = Prompt("u", 40, 12);

  void ExpectRightTokens(const std::shared_ptr<RecordingStream>& stream) {
    TurnToTheEnd({stream});
    EXPECT_EQ(stream->ids[0], prefill_.Alone(sequence_, 0));
  }
};

TEST_F(LoopTransferTest, BlocksAreBoundWhenTheManifestComes) {
  const auto stream = Open(sequence_);
  EXPECT_THAT(stream->ready, ElementsAre(1));
  EXPECT_EQ(snapshot_.blocks_held, 0);
  EXPECT_EQ(snapshot_.blocks_promised, 4);
  const Pushing pushing = Begin(prefill_.Compute(sequence_, 1));
  EXPECT_TRUE(pushing.stream->proceeded);
  EXPECT_EQ(snapshot_.blocks_held, 3);
  EXPECT_EQ(snapshot_.blocks_promised, 1);
  EXPECT_EQ(snapshot_.transfers, 1);
}

TEST_F(LoopTransferTest, RetryBeforeTheManifestFencesTheOldAttempt) {
  const auto stream = Open(sequence_);
  Say(Retried{1, 2});
  EXPECT_THAT(stream->ready, ElementsAre(1, 2));
  EXPECT_TRUE(absl::IsNotFound(Push(prefill_.Compute(sequence_, 1))));
  EXPECT_TRUE(Push(prefill_.Compute(sequence_, 2)).ok());
  ExpectRightTokens(stream);
}

TEST_F(LoopTransferTest, AManifestHeardAfterTheRetryTakesNoBlocks) {
  const auto stream = Open(sequence_);
  inbox_->PushUnbounded(Retried{1, 2});  // is there before what the manifest says
  const Pushing old = Begin(prefill_.Compute(sequence_, 1));
  EXPECT_THAT(stream->ready, ElementsAre(1, 2));
  EXPECT_FALSE(old.stream->proceeded);
  EXPECT_TRUE(absl::IsAborted(*old.stream->end)) << *old.stream->end;
  EXPECT_EQ(snapshot_.blocks_held, 0);
  EXPECT_EQ(snapshot_.blocks_promised, 4);
  EXPECT_EQ(snapshot_.transfers, 0);
  EXPECT_TRUE(Push(prefill_.Compute(sequence_, 2)).ok());
  ExpectRightTokens(stream);
}

TEST_F(LoopTransferTest, RetryAmidFramesDropsWhatCame) {
  const auto stream = Open(sequence_);
  const PushedKv old = prefill_.Compute(sequence_, 1);
  Pushing pushing = Begin(old);
  EXPECT_TRUE(pushing.transfer->Take(old.frames[0]).ok());
  Say(Retried{1, 5});
  EXPECT_THAT(stream->ready, ElementsAre(1, 5));
  EXPECT_EQ(snapshot_.blocks_held, 0);
  EXPECT_EQ(snapshot_.blocks_promised, 4);
  EXPECT_TRUE(absl::IsAborted(*pushing.stream->end));
  EXPECT_TRUE(absl::IsAborted(pushing.transfer->Take(old.frames[1])));
  EXPECT_TRUE(Push(prefill_.Compute(sequence_, 5)).ok());
  ExpectRightTokens(stream);
}

TEST_F(LoopTransferTest, RetryAfterTheCommitIsTooLate) {
  const auto stream = OpenAndPush(sequence_);
  Say(Retried{1, 2});
  EXPECT_THAT(stream->ready, ElementsAre(1));
  // Said at the commit, and again to whoever asks too late.
  const auto said = Pair(1, 3 * runner_->storage().layout().block_bytes());
  EXPECT_THAT(stream->committed, ElementsAre(said, said));
  EXPECT_TRUE(absl::IsNotFound(Push(prefill_.Compute(sequence_, 2))));
  ExpectRightTokens(stream);
}

TEST_F(LoopTransferTest, ARetryThatRacesWithACommitWinsOrLosesWhole) {
  const auto stream = Open(sequence_);
  const PushedKv kv = prefill_.Compute(sequence_, 1);
  Pushing pushing = Begin(kv);
  for (const auto& frame : kv.frames) ASSERT_TRUE(pushing.transfer->Take(frame).ok());
  inbox_->PushUnbounded(Retried{1, 2});  // is there before the commit
  ASSERT_TRUE(pushing.transfer->Commit(kv.commit).ok());
  loop_->Turn();
  EXPECT_TRUE(absl::IsAborted(*pushing.stream->end));
  EXPECT_THAT(stream->ready, ElementsAre(1, 2));
  EXPECT_THAT(stream->ids, IsEmpty());
  EXPECT_TRUE(Push(prefill_.Compute(sequence_, 2)).ok());
  ExpectRightTokens(stream);
}

TEST_F(LoopTransferTest, ARetryCountsUp) {
  const auto stream = Open(sequence_, 4);
  Say(Retried{1, 4});
  EXPECT_TRUE(absl::IsInvalidArgument(*stream->end)) << *stream->end;
}

TEST_F(LoopTransferTest, OneStreamHoldsAnAttempt) {
  const auto first = Open(sequence_), second = Open(sequence_);
  EXPECT_TRUE(absl::IsAlreadyExists(*second->end)) << *second->end;
  const auto other_attempt = Open(sequence_, 2);
  EXPECT_FALSE(other_attempt->end.has_value());
  EXPECT_TRUE(Push(prefill_.Compute(sequence_, 1)).ok());
  ExpectRightTokens(first);
}

TEST_F(LoopTransferTest, AFailedPushGivesItsBlocksBackAndMayComeAgain) {
  const auto stream = Open(sequence_);
  const PushedKv good = prefill_.Compute(sequence_, 1);
  PushedKv bad = good;
  bad.frames.back().set_crc32c(~bad.frames.back().crc32c());
  EXPECT_TRUE(absl::IsDataLoss(Push(bad)));
  EXPECT_EQ(snapshot_.blocks_held, 0);
  EXPECT_EQ(snapshot_.blocks_promised, 4);
  bad = good;
  bad.frames.pop_back();
  EXPECT_TRUE(absl::IsDataLoss(Push(bad)));
  EXPECT_THAT(stream->ids, IsEmpty()) << "nothing is decoded from a part";
  EXPECT_EQ(snapshot_.transfers_corrupt, 2u);
  EXPECT_EQ(snapshot_.transfers_invalid, 0u);
  EXPECT_TRUE(Push(good).ok());
  ExpectRightTokens(stream);
}

TEST_F(LoopTransferTest, OnlyATransferThatWentWrongHereIsLogged) {
  Open(sequence_);
  PushedKv bad = prefill_.Compute(sequence_, 1);
  Pushing pushing = Begin(bad);
  pushing.transfer->Lost(pushing.stream.get(), absl::CancelledError("the sender has gone"));
  loop_->Turn();
  EXPECT_EQ(snapshot_.blocks_held, 0);
  EXPECT_THAT(logger_.lines, IsEmpty()) << "its choices may have ended on their first token";
  EXPECT_EQ(snapshot_.transfers_invalid, 0u);
  bad.frames.back().set_crc32c(~bad.frames.back().crc32c());
  EXPECT_TRUE(absl::IsDataLoss(Push(bad)));
  EXPECT_THAT(logger_.lines, ElementsAre(HasSubstr("transfer failed")));
}

TEST_F(LoopTransferTest, FirstTokensOfOtherChoicesAreRefused) {
  const auto stream = Open(sequence_);
  PushedKv kv = prefill_.Compute(sequence_, 1);
  kv.commit.mutable_first_tokens(0)->set_choice(1);
  kv.commit.set_crc32c(wire::Crc32cOf(kv.commit, sequence_.uuid, 1));
  EXPECT_TRUE(absl::IsInvalidArgument(Push(kv)));
  EXPECT_EQ(snapshot_.transfers_invalid, 1u);
  EXPECT_EQ(snapshot_.blocks_held, 0);
  EXPECT_TRUE(Push(prefill_.Compute(sequence_, 1)).ok());
  ExpectRightTokens(stream);
}

TEST_F(LoopTransferTest, ATransferThatStallsIsReportedOnce) {
  const auto stream = Open(sequence_);
  clock_.Advance(std::chrono::hours(1));
  loop_->Turn();
  EXPECT_THAT(stream->stalled, IsEmpty()) << "a prompt may wait long for its turn";
  const PushedKv kv = prefill_.Compute(sequence_, 1);
  Pushing pushing = Begin(kv);
  clock_.Advance(std::chrono::seconds(9));
  EXPECT_TRUE(pushing.transfer->Take(kv.frames[0]).ok());
  clock_.Advance(std::chrono::seconds(9));
  loop_->Turn();
  EXPECT_THAT(stream->stalled, IsEmpty()) << "a frame came";
  EXPECT_EQ(loop_->next_timer(), clock_.Now() + std::chrono::seconds(1));
  clock_.Advance(std::chrono::seconds(1));
  loop_->Turn();
  loop_->Turn();
  EXPECT_THAT(stream->stalled, ElementsAre(1));
  EXPECT_EQ(snapshot_.transfers_stalled, 1u);
  EXPECT_FALSE(loop_->next_timer().has_value());
  Say(Retried{1, 2});
  EXPECT_TRUE(Push(prefill_.Compute(sequence_, 2)).ok());
  ExpectRightTokens(stream);
}

TEST_F(LoopTransferTest, AnAttemptThatFailedAndDoesNotComeAgainStallsToo) {
  const auto stream = Open(sequence_);
  Pushing pushing = Begin(prefill_.Compute(sequence_, 1));
  pushing.transfer->Lost(pushing.stream.get(), absl::CancelledError("gone"));
  loop_->Turn();
  EXPECT_EQ(snapshot_.blocks_held, 0);
  clock_.Advance(std::chrono::seconds(10));
  loop_->Turn();
  EXPECT_THAT(stream->stalled, ElementsAre(1));
}

TEST_F(LoopTransferTest, ATransferFailsForOneReasonTheFirst) {
  const auto failed = [&] {
    return std::vector{snapshot_.transfers_corrupt, snapshot_.transfers_invalid,
                       snapshot_.transfers_stalled};
  };
  const auto stream = Open(sequence_);
  PushedKv corrupt = prefill_.Compute(sequence_, 1);
  corrupt.frames.back().set_crc32c(~corrupt.frames.back().crc32c());
  EXPECT_TRUE(absl::IsDataLoss(Push(corrupt)));
  clock_.Advance(std::chrono::seconds(10));
  loop_->Turn();
  EXPECT_THAT(stream->stalled, ElementsAre(1)) << "its router has to know that nothing comes";
  EXPECT_THAT(failed(), ElementsAre(1, 0, 0));
  for (const absl::Status& status :
       {absl::DataLossError("not what was sent"), absl::InvalidArgumentError("does not fit")}) {
    Pushing pushing = Begin(corrupt);
    clock_.Advance(std::chrono::seconds(10));
    loop_->Turn();
    pushing.transfer->Lost(pushing.stream.get(), status);
    loop_->Turn();
  }
  EXPECT_THAT(stream->stalled, ElementsAre(1, 1, 1)) << "once for each transfer";
  EXPECT_THAT(failed(), ElementsAre(1, 0, 2));
}

TEST_F(LoopTransferTest, CancelAtEveryStageFreesEverything) {
  for (int stage = 0; stage < 6; ++stage) {
    SCOPED_TRACE(stage);
    const auto stream = Open(sequence_);
    const PushedKv kv = prefill_.Compute(sequence_, 1, stream->held);
    const RequestId id = streams_.size();
    Pushing pushing;
    if (stage == 1) {  // the manifest is there, the loop has not heard of it
      pushing.transfer = *receiver_->Find(kv.manifest);
      EXPECT_TRUE(pushing.transfer->Begin(kv.manifest, pushing.stream).ok());
    }
    if (stage >= 2) pushing = Begin(kv);
    if (stage >= 3) {
      EXPECT_TRUE(pushing.transfer->Take(kv.frames[0]).ok());
    }
    if (stage >= 4) {
      for (size_t i = 1; i < kv.frames.size(); ++i) {
        EXPECT_TRUE(pushing.transfer->Take(kv.frames[i]).ok());
      }
      EXPECT_TRUE(pushing.transfer->Commit(kv.commit).ok());
    }
    if (stage >= 5) loop_->Turn();
    Say(StreamLost{id});
    EXPECT_TRUE(absl::IsCancelled(*stream->end)) << *stream->end;
    if (stage >= 1 && stage <= 3) {
      EXPECT_TRUE(absl::IsAborted(*pushing.stream->end));
    } else if (stage >= 4) {
      EXPECT_TRUE(pushing.stream->end->ok()) << "the commit was there first";
    }
    EXPECT_TRUE(absl::IsNotFound(Push(kv)));
    ExpectAllBack();
  }
}

}  // namespace
}  // namespace setu::decode
