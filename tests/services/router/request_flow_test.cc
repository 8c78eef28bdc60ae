// SPDX-License-Identifier: Apache-2.0
// What becomes of a request when its workers fail at each point: the client's stream shows no gap,
// no repeat, and one end.
#include "services/router/request_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/services/router/router_fixture.h"

namespace setu::router {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Point = test::PrefillPlan::Point;

class RequestFlowTest : public RouterFixture {};

TEST_F(RequestFlowTest, TokensGoFromPrefillAndDecodeToTheClient) {
  StartReady();
  test::Answer answer = Generate(Request(20));
  ExpectWhole(answer, 20);
  ASSERT_EQ(answer.started.size(), 1u);
  EXPECT_EQ(answer.started[0].model(), "letters");
  EXPECT_EQ(answer.started[0].numerics(), "letters/r1");
  EXPECT_EQ(answer.started[0].prompt_tokens(), 3u);
  const setu::v1::Finished& finished = answer.choices[0].finished[0];
  EXPECT_EQ(finished.finish_reason(), setu::v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(finished.usage().prompt_tokens(), 3u);
  EXPECT_EQ(finished.timings().attempts(), 1u);
  EXPECT_EQ(router_->snapshot().resumes.total(), 0u);
}

TEST_F(RequestFlowTest, OneNumericPathIsNoMixture) {
  StartReady();
  test::Answer answer = Generate(Request(5, 2));
  for (const auto& [number, choice] : answer.choices) {
    EXPECT_EQ(choice.finished[0].mixed_numerics_size(), 0);
  }
  EXPECT_EQ(observer_.requests, 0);
}

// Prefill computes on letters/r1, decode on digits/r1.
class MixedFlowTest : public RouterFixture {
 protected:
  void SetUp() override {
    workers_.fingerprint.set_allow_mixed_numerics(true);
    Prefill();
    workers_.fingerprint.set_numerics("digits/r1");
    Decode();
    options_.workers.allow_mixed_numerics = true;
  }
};

TEST_F(MixedFlowTest, BothPathsAreShownAndTheRequestIsCountedOnce) {
  StartReady();
  EXPECT_EQ(observer_.requests, 0) << "the canary is nobody's request";
  test::Answer answer = Generate(Request(12, 3));
  ExpectWhole(answer, 12, 3);
  for (const auto& [number, choice] : answer.choices) {
    EXPECT_THAT(choice.finished[0].mixed_numerics(),
                ::testing::ElementsAre("digits/r1", "letters/r1"));
  }
  EXPECT_EQ(observer_.requests, 1);
}

TEST_F(RequestFlowTest, ChoicesShareAStream) {
  StartReady();
  ExpectWhole(Generate(Request(12, 3)), 12, 3);
  EXPECT_EQ(decodes_[0]->streams(), 2) << "the canary's and one more";
}

TEST_F(RequestFlowTest, RepeatedTokensAreDroppedByIndex) {
  StartReady();
  decodes_[0]->Plan({.repeat = true});
  ExpectWhole(Generate(Request(10)), 10);
}

TEST_F(RequestFlowTest, AFirstTokenThatEndsItNeedsNoDecode) {
  StartReady();
  ExpectWhole(Generate(Request(1)), 1);
  workers_.EndAt(0, ByteTokenizer::kEnd);
  test::Answer answer = Generate(Request(10));
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.ids(), (std::vector<uint32_t>{ByteTokenizer::kEnd}));
  EXPECT_EQ(answer.choices[0].finished[0].finish_reason(), setu::v1::FINISH_REASON_STOP);
  EXPECT_EQ(decodes_[0]->tokens_sent(), kCanaryTokens);
}

TEST_F(RequestFlowTest, AStopStringEndsAllDecodeWork) {
  StartReady();
  decodes_[0]->Plan({.hang_at = 6});
  setu::v1::GenerateRequest request = Request(100);
  request.mutable_stopping()->add_strings("ef");
  test::Answer answer = Generate(request);
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.choices[0].text, "abcd");
  EXPECT_EQ(answer.choices[0].finished[0].stop_match(), "ef");
  decodes_[0]->WaitOpenStreams(0);
}

// A worker sends at most 256 tokens that nobody has taken.
TEST_F(RequestFlowTest, TokensHeldBackForAStopStringDoNotHoldUpTheirWorker) {
  StartReady();
  setu::v1::GenerateRequest request = Request(480);
  request.mutable_stopping()->add_strings(workers_.Text(480).substr(20, 250) + "!");
  ExpectWhole(Generate(request), 480);
}

TEST_F(RequestFlowTest, AStopStringStopsItsChoiceAndTheOthersGoOn) {
  StartReady();
  setu::v1::GenerateRequest request = Request(20, 2);
  request.mutable_stopping()->add_strings("ab");  // choice 1 goes from d to w
  test::Answer answer = Generate(request);
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.choices[0].text, "");
  EXPECT_EQ(answer.choices[0].finished[0].stop_match(), "ab");
  EXPECT_EQ(answer.choices[1].text, workers_.Text(20, 1));
}

// Each way of losing a prefill attempt; a second prefill worker or the same one takes over.
class PrefillFails : public RequestFlowTest, public ::testing::WithParamInterface<Point> {};

TEST_P(PrefillFails, ARetryHidesIt) {
  StartReady();
  prefills_[0]->Plan({.fail = GetParam()});
  ExpectWhole(Generate(Request(20)), 20);
  const std::vector<worker::v1::PrefillRequest> requests = prefills_[0]->requests();
  if (GetParam() == Point::kAfterCommit) {
    EXPECT_EQ(requests.size(), 2u) << "decode held the KV: no second prefill";
    return;
  }
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[2].sequence().uuid(), requests[1].sequence().uuid()) << "the same stream";
  EXPECT_GT(requests[2].attempt(), requests[1].attempt());
  EXPECT_EQ(router_->snapshot().retries, 1u);
  EXPECT_EQ(router_->snapshot().resumes.total(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Points, PrefillFails,
                         ::testing::Values(Point::kBefore, Point::kAfterFirst,
                                           Point::kAfterCommit));

TEST_F(RequestFlowTest, PrefillFailingTooOftenEndsUnavailable) {
  StartReady();
  for (const Point point : {Point::kBefore, Point::kAfterFirst}) {
    for (int i = 0; i < 5; ++i) prefills_[0]->Plan({.fail = point});
    const test::Answer answer = Generate(Request(20));
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE) << answer.Explain();
    EXPECT_EQ(answer.LastIndex(), point == Point::kBefore ? "-1" : "0");
    EXPECT_TRUE(answer.broken.empty()) << answer.Explain();
  }
}

TEST_F(RequestFlowTest, AFullPrefillWorkerIsNoFailure) {
  StartReady();
  for (int i = 0; i < 8; ++i) {
    prefills_[0]->Plan({.fail = Point::kBefore,
                        .fail_with = {grpc::StatusCode::RESOURCE_EXHAUSTED, "inbox full"}});
  }
  ExpectWhole(Generate(Request(5)), 5);
}

TEST_F(RequestFlowTest, AStalledTransferIsRetried) {
  StartReady();
  decodes_[0]->Plan({.stall_transfer = true});
  prefills_[0]->Plan({.hang = Point::kAfterFirst});
  ExpectWhole(Generate(Request(20)), 20);
  EXPECT_EQ(router_->snapshot().retries, 1u);
}

TEST_F(RequestFlowTest, ARefusedGrantWaitsForAnother) {
  StartReady();
  decodes_[0]->Plan({.refuse = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "no room")});
  decodes_[0]->Plan({.refuse = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "no room")});
  ExpectWhole(Generate(Request(5)), 5);
  EXPECT_EQ(decodes_[0]->streams(), 4);
}

TEST_F(RequestFlowTest, ARequestThatCanNeverFitIsTheClientsFault) {
  StartReady();
  decodes_[0]->Plan({.refuse = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "900 over 800")});
  const test::Answer answer = Generate(Request(5));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(answer.status.error_message(), HasSubstr("900 over 800"));
}

TEST_F(RequestFlowTest, AMuteWorkerIsGivenUp) {
  options_.flow.grant_timeout = milliseconds(20);
  Decode();
  StartReady();
  decodes_[0]->Plan({.mute = true});
  decodes_[1]->Plan({.mute = true});
  ExpectWhole(Generate(Request(5)), 5);
}

class DecodeLost : public RequestFlowTest, public ::testing::WithParamInterface<int> {};

TEST_P(DecodeLost, TheAnswerGoesOnElsewhere) {
  Decode();
  StartReady();
  for (auto* decode : decodes_) decode->Plan({.lose_at = GetParam()});
  ExpectWhole(Generate(Request(12)), 12);
}

TEST_P(DecodeLost, EachChoiceGoesOnByItself) {
  StartReady();
  decodes_[0]->Plan({.lose_at = GetParam()});
  ExpectWhole(Generate(Request(12, 3)), 12, 3);
}

INSTANTIATE_TEST_SUITE_P(EveryToken, DecodeLost, ::testing::Range(0, 12));

TEST_F(RequestFlowTest, LosingTheWordThatItEndedStillEndsIt) {
  StartReady();
  workers_.EndAt(6, ByteTokenizer::kEnd);
  decodes_[0]->Plan({.lose_at = 6});
  test::Answer answer = Generate(Request(12));
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.ids().size(), 7u);
}

TEST_F(RequestFlowTest, ResumesWithoutProgressEndUnavailable) {
  StartReady();
  for (int i = 0; i < 20; ++i) decodes_[0]->Plan({.refuse = grpc::Status::CANCELLED});
  test::Answer answer = Generate(Request(12, 2));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE) << answer.Explain();
  EXPECT_EQ(answer.LastIndex(), "-1,-1");
}

TEST_F(RequestFlowTest, ProgressRenewsTheTries) {
  StartReady();
  for (int i = 1; i < 20; ++i) decodes_[0]->Plan({.lose_at = i});
  ExpectWhole(Generate(Request(20)), 20);
  EXPECT_GE(router_->snapshot().resumes.total(), 10u);
}

TEST_F(RequestFlowTest, APreemptedChoiceResumesAndTheOthersStay) {
  StartReady();
  decodes_[0]->Plan({.preempt_at = 4});
  ExpectWhole(Generate(Request(12)), 12);
  decodes_[0]->Plan({.preempt_at = 4});
  ExpectWhole(Generate(Request(12, 3)), 12, 3);
}

TEST_F(RequestFlowTest, WhoLostItsBlocksTwiceIsPromisedAllOfThem) {
  StartReady();
  for (const int32_t at : {3, 6}) decodes_[0]->Plan({.preempt_at = at});
  ExpectWhole(Generate(Request(12)), 12);
  EXPECT_EQ(decodes_[0]->promised_all(), 1) << "the third of three";
  EXPECT_EQ(router_->snapshot().resumes.preempted, 2u);
  EXPECT_EQ(router_->snapshot().resumes.total(), 2u);
  decodes_[0]->Plan({.preempt_at = 3});
  ExpectWhole(Generate(Request(12)), 12);
  EXPECT_EQ(decodes_[0]->promised_all(), 1) << "another request starts anew";
}

// In the one there is room for what is new and not for what comes back; the other is slow.
TEST_F(RequestFlowTest, AFullWorkersVictimGoesOnWhereRoomIs) {
  workers_.resume_watermark = 8;
  test::FakeDecode &full = *decodes_[0], &roomy = Decode();
  full.Restart();
  worker::v1::WatchLoadResponse load = full.load();
  load.set_blocks_free(2);
  full.Report(load);
  load = roomy.load();
  load.set_running(10);
  load.set_tokens_per_second(1);
  roomy.Report(load);
  StartReady();
  WaitUntil([](const RouterSnapshot& now) { return now.decode_workers == 2; });
  const int canaries = roomy.streams();
  full.Plan({.preempt_at = 4});
  ExpectWhole(Generate(Request(12)), 12);
  EXPECT_EQ(roomy.streams(), canaries + 1);
  EXPECT_EQ(router_->snapshot().resumes.rebalanced, 1u);
  EXPECT_EQ(router_->snapshot().resumes.total(), 1u);
}

TEST_F(RequestFlowTest, ASilentWorkerIsLeft) {
  options_.flow.silence = milliseconds(50);
  options_.flow.silence_steps = 1;
  StartReady();
  decodes_[0]->Plan({.hang_at = 5});
  ExpectWhole(Generate(Request(12)), 12);
}

TEST_F(RequestFlowTest, AGapIsNeverShown) {
  StartReady();
  decodes_[0]->Plan({.skip_at = 5});
  ExpectWhole(Generate(Request(12)), 12);
  EXPECT_EQ(router_->snapshot().resumes.total(), 1u);
}

TEST_F(RequestFlowTest, AWorkerThatSpeaksOutOfTurnIsLeft) {
  StartReady();
  decodes_[0]->Plan({.hasty = true});
  ExpectWhole(Generate(Request(12)), 12);
  EXPECT_EQ(decodes_[0]->streams(), 3);
}

TEST_F(RequestFlowTest, AStalledReadersEndIsTheAnswersEnd) {
  StartReady();
  decodes_[0]->Plan({.lose_at = 7, .lose_with = {grpc::StatusCode::ABORTED, "reader stalled"}});
  const test::Answer answer = Generate(Request(12));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(answer.LastIndex(), "6");
}

TEST_F(RequestFlowTest, ADrainingWorkerIsLeftForAnother) {
  Decode();
  StartReady();
  for (auto* decode : decodes_) decode->Plan({.drain_at = 3, .hang_at = 8});
  ExpectWhole(Generate(Request(30)), 30);
  EXPECT_GE(router_->snapshot().resumes.total(), 1u);
}

TEST_F(RequestFlowTest, ADrainingWorkerFinishesWhereNobodyElseHasRoom) {
  StartReady();
  decodes_[0]->Plan({.drain_at = 3});
  decodes_[0]->Plan({.refuse = grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining")});
  ExpectWhole(Generate(Request(30)), 30);
}

// Whoever was to take over has nothing to do then.
TEST_F(RequestFlowTest, ADrainingWorkerThatIsLostAfterTheLastTokenHasFinished) {
  options_.flow.grant_timeout = std::chrono::hours(1);  // of who was to take over
  StartReady();
  decodes_[0]->Plan({.lose_at = 30, .drain_at = 3});
  decodes_[0]->Plan({.mute = true});
  ExpectWhole(Generate(Request(30)), 30);
}

TEST_F(RequestFlowTest, EachChoiceOfADrainingWorkerMoves) {
  Decode();
  StartReady();
  for (auto* decode : decodes_) decode->Plan({.drain_at = 3, .hang_at = 8});
  ExpectWhole(Generate(Request(30, 3)), 30, 3);
}

TEST_F(RequestFlowTest, AKilledDecodeWorkerThatComesBackGoesOn) {
  StartReady();
  decodes_[0]->Plan({.hang_at = 5});
  std::future<test::Answer> answer = GenerateAsync(Request(12));
  decodes_[0]->WaitTokensSent(kCanaryTokens + 5);
  decodes_[0]->Restart();
  ExpectWhole(answer.get(), 12);
}

// The wait to resume is longer than the client waits: it hears why, and how far it came, in time.
TEST_F(RequestFlowTest, WithoutAWorkerLeftTheAnswerComesBeforeTheDeadline) {
  StartReady();
  decodes_[0]->Plan({.hang_at = 5});
  std::future<test::Answer> waiting = GenerateAsync(Request(12), {.deadline = milliseconds(1000)});
  decodes_[0]->WaitTokensSent(kCanaryTokens + 5);
  decodes_[0]->Kill();
  test::Answer answer = waiting.get();
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE) << answer.Explain();
  EXPECT_THAT(answer.status.error_message(), HasSubstr("no decode worker"));
  // The kill may lose tokens on their way.
  EXPECT_EQ(answer.LastIndex(), std::to_string(std::ssize(answer.ids()) - 1));
}

}  // namespace
}  // namespace setu::router
