// SPDX-License-Identifier: Apache-2.0
// Batches, bounds and tries under a clock that the test turns; otlp_exporter_test.cc has the wire.
#include "common/tracing/batch_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"
#include "tests/support/keeping_logger.h"

namespace setu::tracing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Answers when the test says so.
class FakeCollector final : public Collector {
 public:
  std::unique_ptr<rpc::OpenCall> Export(std::span<const Span> spans, TimePoint,
                                        Done done) override {
    batches.push_back(spans.size());
    pending = std::move(done);
    return std::make_unique<rpc::OpenCall>();
  }
  std::vector<size_t> batches;  // sizes, as they came
  Done pending;
};

class BatchSenderTest : public ::testing::Test {
 protected:
  ~BatchSenderTest() override {
    sender_.Stop();
    Turn();
  }

  static std::vector<Span> Trace(size_t spans) { return std::vector<Span>(spans); }
  void Add(size_t spans) {
    sender_.Add(Trace(spans));
    Turn();
  }
  void Turn() {
    while (loop_.Turn()) {
    }
  }
  void Pass(Duration time) {
    clock_.Advance(time);
    Turn();
  }
  void Answer(absl::StatusOr<Taken> taken) {
    std::exchange(collector_.pending, nullptr)(std::move(taken));
    Turn();
  }
  void Fail() { Answer(absl::UnavailableError("nobody there")); }
  // Each span that was added is counted once, or still kept.
  uint64_t Counted() const {
    const BatchFigures f = sender_.figures();
    return f.exported + f.no_room + f.undelivered + f.rejected;
  }
  bool Finished() { return sender_.WaitFinished(Duration::zero()); }

  testing::FakeClock clock_;
  rpc::EventLoop loop_{clock_, 16};
  FakeCollector collector_;
  test::KeepingLogger logger_;
  BatchSender sender_{loop_,
                      collector_,
                      {.max_spans = 20,
                       .batch_spans = 8,
                       .batch_age = seconds(1),
                       .call_timeout = seconds(10),
                       .tries = 3,
                       .first_backoff = seconds(1),
                       .longest_backoff = seconds(4)},
                      "c:4317",
                      logger_};
};

TEST_F(BatchSenderTest, ABatchIsSentWhenItsFirstSpanHasWaited) {
  Add(2);
  Pass(milliseconds(600));
  Add(3);
  Pass(milliseconds(399));
  EXPECT_THAT(collector_.batches, IsEmpty());
  Pass(milliseconds(1));
  EXPECT_THAT(collector_.batches, ElementsAre(5));
  Answer(Taken{});
  EXPECT_EQ(sender_.figures().exported, 5u);
}

TEST_F(BatchSenderTest, ABatchIsSentWhenItIsFull) {
  Add(5);
  Add(3);
  EXPECT_THAT(collector_.batches, ElementsAre(8));
}

TEST_F(BatchSenderTest, ATraceStaysInOneBatch) {
  Add(5);
  Add(5);
  EXPECT_THAT(collector_.batches, ElementsAre(5));
  Answer(Taken{});
  Pass(seconds(1));
  EXPECT_THAT(collector_.batches, ElementsAre(5, 5));
  Answer(Taken{});
  Add(11);
  EXPECT_THAT(collector_.batches, ElementsAre(5, 5, 11)) << "also where it fills more than one";
}

TEST_F(BatchSenderTest, OneCallAtATime) {
  Add(8);
  Add(8);
  Pass(seconds(5));
  EXPECT_THAT(collector_.batches, ElementsAre(8));
  Answer(Taken{});
  EXPECT_THAT(collector_.batches, ElementsAre(8, 8));
}

// Those on their way count too.
TEST_F(BatchSenderTest, WhatFindsNoRoomIsDroppedWhole) {
  Add(8);
  Add(8);
  Add(5);
  EXPECT_EQ(sender_.figures().no_room, 5u);
  Add(4);
  EXPECT_EQ(sender_.figures().no_room, 5u);
  Answer(Taken{});
  Add(8);
  EXPECT_EQ(sender_.figures().no_room, 5u) << "what was taken leaves its room";
}

TEST_F(BatchSenderTest, WhatFailedIsTriedAgainLaterAndLater) {
  Add(8);
  Fail();
  Pass(milliseconds(999));
  EXPECT_THAT(collector_.batches, ElementsAre(8));
  Pass(milliseconds(1));
  EXPECT_THAT(collector_.batches, ElementsAre(8, 8));
  Fail();
  Pass(milliseconds(1999));
  EXPECT_THAT(collector_.batches, ElementsAre(8, 8));
  Pass(milliseconds(1));
  EXPECT_THAT(collector_.batches, ElementsAre(8, 8, 8));
  Answer(Taken{});
  EXPECT_EQ(sender_.figures().exported, 8u);
  EXPECT_EQ(sender_.figures().undelivered, 0u);
}

TEST_F(BatchSenderTest, ABatchIsDroppedAfterItsTriesAndTheNextOneComes) {
  Add(8);
  Add(3);
  for (int i = 0; i < 3; ++i) {
    Fail();
    Pass(seconds(4));
  }
  EXPECT_EQ(sender_.figures().undelivered, 8u);
  EXPECT_THAT(collector_.batches, ElementsAre(8, 8, 8, 3));
  Fail();
  Pass(milliseconds(3999));
  EXPECT_EQ(collector_.batches.size(), 4u) << "a new batch does not make the collector well";
  Pass(milliseconds(1));
  EXPECT_EQ(collector_.batches.size(), 5u);
  Add(8);
  Add(8);
  EXPECT_EQ(sender_.figures().no_room, 0u) << "what was dropped leaves its room";
}

TEST_F(BatchSenderTest, WhatCannotHelpIsNotTriedAgain) {
  Add(8);
  Answer(absl::UnimplementedError("no such service"));
  Pass(seconds(60));
  EXPECT_THAT(collector_.batches, ElementsAre(8));
  EXPECT_EQ(sender_.figures().undelivered, 8u);
}

TEST_F(BatchSenderTest, ACollectorThatNeverAnswersHasFailed) {
  Add(8);
  Pass(seconds(11));
  EXPECT_THAT(logger_.lines(), ElementsAre(HasSubstr("does not answer")));
  const auto late = std::exchange(collector_.pending, nullptr);
  Pass(seconds(1));
  EXPECT_THAT(collector_.batches, ElementsAre(8, 8));
  late(Taken{});
  Turn();
  EXPECT_EQ(sender_.figures().exported, 0u) << "the answer of a call that was given up";
  Answer(Taken{});
  EXPECT_EQ(sender_.figures().exported, 8u);
}

TEST_F(BatchSenderTest, RejectedSpansAreCountedApart) {
  Add(8);
  Answer(Taken{3, "too old"});
  EXPECT_EQ(sender_.figures().exported, 5u);
  EXPECT_EQ(sender_.figures().rejected, 3u);
  EXPECT_THAT(logger_.lines(), ElementsAre(HasSubstr("rejected 3 spans: too old")));
  Add(8);
  Answer(Taken{1000, "nonsense"});
  EXPECT_EQ(sender_.figures().rejected, 11u) << "never more than were sent";
  EXPECT_EQ(Counted(), 16u);
}

TEST_F(BatchSenderTest, TheLogHasALineForEachChange) {
  for (int i = 0; i < 3; ++i) {
    Add(8);
    Answer(Taken{});
  }
  EXPECT_THAT(logger_.lines(), ElementsAre("I traces reach the collector at c:4317"));
  Add(8);
  for (int i = 0; i < 3; ++i) {
    Fail();
    Pass(seconds(4));
  }
  Add(8);
  Fail();
  Pass(seconds(4));
  ASSERT_EQ(logger_.lines().size(), 2u);
  EXPECT_THAT(logger_.lines()[1], HasSubstr("W traces do not reach the collector at c:4317"));
  EXPECT_THAT(logger_.lines()[1], HasSubstr("nobody there"));
  Answer(Taken{});
  ASSERT_EQ(logger_.lines().size(), 3u);
  EXPECT_EQ(logger_.lines()[2], "I traces reach the collector at c:4317 again; 8 spans were lost");
}

TEST_F(BatchSenderTest, FinishingSendsWhatWaitsAtOnce) {
  Add(8);
  Add(7);
  Add(2);
  sender_.Finish();
  Turn();
  EXPECT_FALSE(Finished());
  Answer(Taken{});
  Answer(Taken{});
  EXPECT_FALSE(Finished());
  Answer(Taken{});
  EXPECT_THAT(collector_.batches, ElementsAre(8, 7, 2));
  EXPECT_TRUE(Finished());
  EXPECT_EQ(sender_.figures().exported, 17u);
}

TEST_F(BatchSenderTest, FinishingWaitsForNoBackoffAndTriesNothingTwice) {
  Add(8);
  Fail();
  Add(8);
  sender_.Finish();
  Turn();
  EXPECT_THAT(collector_.batches, ElementsAre(8, 8)) << "it rested, and is tried now";
  Fail();
  Fail();
  EXPECT_THAT(collector_.batches, ElementsAre(8, 8, 8));
  EXPECT_TRUE(Finished());
  EXPECT_EQ(sender_.figures().undelivered, 16u);
}

TEST_F(BatchSenderTest, StoppingDropsWhatIsLeft) {
  Add(8);
  Add(8);
  sender_.Stop();
  Turn();
  EXPECT_TRUE(Finished());
  EXPECT_THAT(collector_.batches, ElementsAre(8));
  EXPECT_EQ(sender_.figures().undelivered, 16u);
}

TEST_F(BatchSenderTest, WithoutSpansThereAreNoCalls) {
  for (int i = 0; i < 5; ++i) Pass(std::chrono::hours(1));
  sender_.Finish();
  Turn();
  EXPECT_TRUE(Finished());
  EXPECT_THAT(collector_.batches, IsEmpty());
}

}  // namespace
}  // namespace setu::tracing
