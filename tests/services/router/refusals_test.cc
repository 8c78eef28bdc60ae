// SPDX-License-Identifier: Apache-2.0
// What a router that cannot take a request tells its client, and what it tells the log: overload,
// drain, no workers, workers that do not fit.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/services/router/router_fixture.h"
#include "tests/services/router/trace_keeper.h"

namespace setu::router {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RefusalsTest : public RouterFixture {
 protected:
  void SetPlaces(uint32_t places) {
    worker::v1::WatchLoadResponse load = decodes_[0]->load();
    load.set_running_max(places);
    decodes_[0]->Report(load);
  }

  TraceKeeper traces_;
};

// A client that resumes reads how far it came, whatever refused it.
TEST_F(RefusalsTest, EveryRefusalSaysThatNothingWasSent) {
  options_.queue.capacity = 1;
  StartWithoutRoom();
  const auto refused = [&](const setu::v1::GenerateRequest& request, grpc::StatusCode code) {
    const test::Answer answer = Generate(request);
    EXPECT_EQ(answer.status.error_code(), code) << answer.Explain();
    EXPECT_EQ(answer.LastIndex(), "-1") << answer.Explain();
    const bool for_room = code == grpc::StatusCode::RESOURCE_EXHAUSTED;
    EXPECT_EQ(answer.trailers.contains("grpc-retry-pushback-ms"), for_room);
    EXPECT_EQ(answer.status.error_details().empty(), !for_room) << "RetryInfo";
  };
  setu::v1::GenerateRequest elsewhere = Request(3);
  elsewhere.set_model("another");
  refused(Request(0), grpc::StatusCode::INVALID_ARGUMENT);
  refused(elsewhere, grpc::StatusCode::NOT_FOUND);
  std::future<test::Answer> waiting = GenerateAsync(Request(50));
  WaitQueued(1);
  refused(Request(50, 3), grpc::StatusCode::RESOURCE_EXHAUSTED);
  SetFree(1024);
  ExpectWhole(waiting.get(), 50);
  decodes_[0]->Kill();
  WaitReady(false);
  refused(Request(3), grpc::StatusCode::UNAVAILABLE);
  workers_.fingerprint.set_numerics("digits/r1");
  decodes_[0]->Restart();
  WaitUntil([](const RouterSnapshot& now) { return now.decode_unusable.misfit == 1; });
  refused(Request(3), grpc::StatusCode::FAILED_PRECONDITION);
  router_->BeginDrain();
  refused(Request(3, 2), grpc::StatusCode::UNAVAILABLE);
}

// Cancelled or reset, it looks the same to the router: there is no message.
TEST_F(RefusalsTest, AStreamWithoutItsMessageIsNoRequest) {
  options_.tracer = &traces_.tracer();
  StartReady();
  grpc::GenericStub stub(server_->InProcessChannel());
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, "/setu.v1.InferenceService/Generate", &queue);
  grpc::Status status;
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  call->WritesDone(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  call->Finish(&status, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED) << status.error_message();
  const RouterSnapshot now = router_->snapshot();
  EXPECT_EQ(now.refused_invalid, 0u);
  EXPECT_EQ(now.admitted, 0u);
  EXPECT_TRUE(traces_.all().empty());
}

TEST_F(RefusalsTest, AFullQueueRefusesAtOnceWithAHint) {
  options_.queue.capacity = 2;
  StartWithoutRoom();
  std::vector<std::future<test::Answer>> waiting;
  for (size_t i = 1; i <= 2; ++i) {
    waiting.push_back(GenerateAsync(Request(50)));
    WaitQueued(i);
  }
  for (int i = 0; i < 3; ++i) {
    const test::Answer refused = Generate(Request(50));
    EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_TRUE(refused.trailers.contains("grpc-retry-pushback-ms"));
  }
  EXPECT_EQ(router_->snapshot().refused_full, 3u);
  EXPECT_THAT(logger_.lines("overloaded"),
              ElementsAre("W overloaded: prompts are refused: the queue is full; retry after the "
                          "delay given"));
  SetFree(1024);
  for (auto& answer : waiting) ExpectWhole(answer.get(), 50);
}

TEST_F(RefusalsTest, WhoWaitsTooLongIsRefusedWithAHint) {
  options_.queue.queue_timeout = milliseconds(30);
  StartWithoutRoom();
  const test::Answer answer = Generate(Request(50));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(answer.trailers.contains("grpc-retry-pushback-ms"));
  EXPECT_EQ(router_->snapshot().failed, 1u);
  EXPECT_EQ(logger_.lines("overloaded").size(), 1u);
}

// Nobody who could be served waits behind a request that nobody can serve.
TEST_F(RefusalsTest, WhatNoWorkerCouldEverTakeIsRefusedAtOnce) {
  SetPlaces(4);
  StartWithoutRoom();
  std::future<test::Answer> waiting = GenerateAsync(Request(50, 4));
  WaitQueued(1);
  const test::Answer refused = Generate(Request(50, 5));
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << refused.Explain();
  EXPECT_THAT(refused.status.error_message(), HasSubstr("sampling.n is 5; it must be at most 4"));
  EXPECT_FALSE(refused.trailers.contains("grpc-retry-pushback-ms"));
  EXPECT_EQ(router_->snapshot().refused_invalid, 1u);
  SetFree(1024);
  ExpectWhole(waiting.get(), 50, 4);
}

// Its worker was replaced by a smaller one while it waited.
TEST_F(RefusalsTest, WhoWaitsForAWorkerThatBecameTooSmallIsToldSo) {
  StartWithoutRoom();
  std::future<test::Answer> waiting = GenerateAsync(Request(50, 5));
  WaitQueued(1);
  std::future<test::Answer> behind = GenerateAsync(Request(50, 4));
  WaitQueued(2);
  SetPlaces(4);
  const test::Answer answer = waiting.get();
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << answer.Explain();
  EXPECT_THAT(answer.status.error_message(), HasSubstr("sampling.n is 5; it must be at most 4"));
  SetFree(1024);
  ExpectWhole(behind.get(), 50, 4);
}

TEST_F(RefusalsTest, DrainFinishesWhatRunsAndRefusesTheRest) {
  StartReady();
  decodes_[0]->Plan({.hang_at = 2});
  grpc::ClientContext context;
  auto stream = stub_->Generate(&context, Request(10));
  decodes_[0]->WaitTokensSent(kCanaryTokens + 2);
  router_->BeginDrain();
  EXPECT_EQ(Generate(Request(3)).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(router_->snapshot().refused_draining, 1u);
  EXPECT_FALSE(router_->WaitDrained(milliseconds(1))) << "one still runs";
  decodes_[0]->Restart();  // it goes on there
  setu::v1::GenerateResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(router_->WaitDrained(std::chrono::seconds(10)));
  router_->BeginDrain();
  EXPECT_THAT(logger_.lines("drain"),
              ElementsAre("I draining: 1 requests go on, new ones are refused",
                          "I drained: no request runs any more"));
}

TEST_F(RefusalsTest, ACanaryThatFailsAgainAndAgainHasOneLine) {
  for (int i = 0; i < 2; ++i) {
    decodes_[0]->Plan({.refuse = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "bad day")});
  }
  StartReady();
  EXPECT_THAT(logger_.lines("ready"),
              ElementsAre(HasSubstr("worker"), HasSubstr("worker"),
                          "W not ready: the canary failed: bad day", "I ready"));
}

TEST_F(RefusalsTest, AClientsTokenProvesReadinessToo) {
  clock_ = &fake_;  // too slow for a second canary
  decodes_[0]->Plan({.refuse = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "bad day")});
  Start();
  while (logger_.lines("canary").empty()) std::this_thread::yield();
  WaitReady(false);
  fake_.Advance(milliseconds(10));  // the worker that failed is used again
  router_->loop().PostCompletion([] {});
  ExpectWhole(Generate(Request(3)), 3);
  EXPECT_TRUE(router_->snapshot().ready);
  EXPECT_EQ(decodes_[0]->streams(), 2) << "the canary's and the client's";
}

TEST_F(RefusalsTest, TheCanaryGoesBeforePromptsThatWait) {
  StartWithoutRoom();
  std::future<test::Answer> waiting = GenerateAsync(Request(50));
  WaitQueued(1);
  prefills_[0]->Kill();
  WaitReady(false);
  prefills_[0]->Restart();
  WaitReady(true);
  EXPECT_EQ(router_->snapshot().queue_length, 1u);
  SetFree(1024);
  ExpectWhole(waiting.get(), 50);
}

TEST_F(RefusalsTest, WithoutAPairItSaysWhatIsMissing) {
  Start();
  WaitReady(true);
  decodes_[0]->Kill();
  WaitReady(false);
  const test::Answer answer = Generate(Request(3));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(answer.status.error_message(), HasSubstr("no decode worker"));
  EXPECT_EQ(router_->snapshot().refused_no_workers, 1u);
  EXPECT_TRUE(logger_.lines("overloaded").empty());
  const int calls = prefills_[0]->calls();
  decodes_[0]->Restart();
  WaitReady(true);
  EXPECT_GT(prefills_[0]->calls(), calls) << "a canary went through first";
  ExpectWhole(Generate(Request(3)), 3);
}

// Their circuits hold back all traffic, not one request's tries each: there is no storm of retries.
TEST_F(RefusalsTest, WorkersThatHaveFailedAreNotTriedByWhoComesNext) {
  constexpr int kRequests = 32;
  options_.workers.circuit = {.first = std::chrono::hours(1), .longest = std::chrono::hours(1)};
  options_.queue.queue_timeout = options_.queue.resume_timeout = milliseconds(30);
  options_.queue.capacity = kRequests;
  Decode();
  StartReady();
  const auto streams = [this] { return decodes_[0]->streams() + decodes_[1]->streams(); };
  const int before = streams();
  for (test::FakeDecode* decode : decodes_) {
    const test::DecodePlan failing = {.refuse = grpc::Status(grpc::StatusCode::UNAVAILABLE, "ill")};
    for (int i = 0; i < kRequests; ++i) decode->Plan(failing);
  }
  const auto expect_unavailable = [](const test::Answer& answer) {
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE) << answer.Explain();
    EXPECT_THAT(answer.status.error_message(), HasSubstr("every decode worker has failed"));
  };
  expect_unavailable(Generate(Request(3)));
  std::vector<std::future<test::Answer>> storm;
  for (int i = 0; i < kRequests; ++i) storm.push_back(GenerateAsync(Request(3)));
  for (auto& answer : storm) expect_unavailable(answer.get());
  EXPECT_EQ(streams() - before, 2) << "one for each worker";
}

TEST_F(RefusalsTest, WorkersThatDoNotFitAreNeverPaired) {
  workers_.fingerprint.set_numerics("digits/r1");
  decodes_[0]->Restart();
  Start();
  test::Answer answer;
  do {
    answer = Generate(Request(3));
  } while (answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);  // not both in sight yet
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(answer.status.error_message(), HasSubstr("prefill-0"));
  EXPECT_THAT(answer.status.error_message(), HasSubstr("decode-0"));
  EXPECT_THAT(answer.status.error_message(), HasSubstr("digits/r1"));
  EXPECT_FALSE(router_->snapshot().ready);
}

}  // namespace
}  // namespace setu::router
