// SPDX-License-Identifier: Apache-2.0
// The router as its clients meet it: answers, deadlines, cancels, slow readers.
#include "services/router/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/services/router/router_fixture.h"

namespace setu::router {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Point = test::PrefillPlan::Point;

class RouterTest : public RouterFixture {};

TEST_F(RouterTest, ServesItsModelsNameAndTokens) {
  StartReady();
  grpc::ClientContext list_context;
  setu::v1::ListModelsResponse models;
  ASSERT_TRUE(stub_->ListModels(&list_context, {}, &models).ok());
  ASSERT_EQ(models.models_size(), 1);
  EXPECT_EQ(models.models(0).name(), "letters");
  EXPECT_EQ(models.models(0).numerics(), "letters/r1");
  EXPECT_TRUE(models.models(0).ready());

  grpc::ClientContext tokenize_context;
  setu::v1::TokenizeRequest text;
  text.set_text("hey");
  text.set_add_special(false);
  setu::v1::TokenizeResponse ids;
  ASSERT_TRUE(stub_->Tokenize(&tokenize_context, text, &ids).ok());
  EXPECT_THAT(ids.token_ids(), ElementsAre('h', 'e', 'y'));

  grpc::ClientContext detokenize_context;
  setu::v1::DetokenizeRequest back;
  *back.mutable_token_ids() = ids.token_ids();
  setu::v1::DetokenizeResponse same;
  ASSERT_TRUE(stub_->Detokenize(&detokenize_context, back, &same).ok());
  EXPECT_EQ(same.text(), "hey");
}

TEST_F(RouterTest, AWrongRequestNamesTheFieldAndTheNextOneIsUnharmed) {
  StartReady();
  const test::Answer wrong = Generate(Request(0));
  EXPECT_EQ(wrong.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(wrong.status.error_message(), HasSubstr("max_tokens"));
  setu::v1::GenerateRequest elsewhere = Request(3);
  elsewhere.set_model("another");
  EXPECT_EQ(Generate(elsewhere).status.error_code(), grpc::StatusCode::NOT_FOUND);
  ExpectWhole(Generate(Request(3)), 3);
  EXPECT_EQ(router_->snapshot().refused_invalid, 2u);
}

TEST_F(RouterTest, EchoComesFirst) {
  StartReady();
  setu::v1::GenerateRequest request;
  request.set_text("hey");
  request.mutable_sampling()->set_max_tokens(3);
  request.mutable_output()->set_echo(true);
  test::Answer answer = Generate(request);
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.choices[0].echo, "hey");
  EXPECT_EQ(answer.choices[0].text, "abc");
}

TEST_F(RouterTest, CarriesTheClientsIdToTheWorkers) {
  StartReady();
  setu::v1::GenerateRequest request = Request(3);
  request.set_request_id("client-7");
  test::Answer answer = Generate(request);
  ASSERT_EQ(answer.started.size(), 1u);
  EXPECT_EQ(answer.started[0].request_id(), "client-7");
  EXPECT_THAT(decodes_[0]->headers("x-request-id"), Contains("client-7"));
  EXPECT_THAT(prefills_[0]->headers("x-request-id"), Contains("client-7"));
  request.set_request_id("not for a header: \xc3\xa9");
  ExpectWhole(Generate(request), 3);
}

TEST_F(RouterTest, CarriesTheClientsTraceToTheWorkers) {
  StartReady();
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  decodes_[0]->Plan({.lose_at = 2});  // the stream that goes on belongs to the trace too
  ExpectWhole(Generate(Request(5), {.headers = {{"traceparent", trace}}}), 5);
  EXPECT_THAT(decodes_[0]->headers("traceparent"), ElementsAre("", trace, trace));
  EXPECT_THAT(prefills_[0]->headers("traceparent"), ElementsAre("", trace, trace));
  ExpectWhole(Generate(Request(5), {.headers = {{"traceparent", std::string(1000, 'x')}}}), 5);
  EXPECT_EQ(decodes_[0]->headers("traceparent").back(), "") << "none that is no trace's";
}

TEST_F(RouterTest, WhatCanNeverFitIsSaidSo) {
  StartReady();
  worker::v1::WatchLoadResponse load = decodes_[0]->load();
  load.set_blocks_total(2);
  load.set_blocks_free(2);
  decodes_[0]->Report(load);
  test::Answer answer;
  do {  // until the report has come
    answer = Generate(Request(20, 3));
  } while (answer.status.ok());
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(answer.status.error_message(), HasSubstr("6 KV blocks"));
}

// Where a request is when its client leaves or its deadline comes.
enum class Stage { kQueue, kGrant, kPrefill, kTransfer, kDecode };

class LeavesAt : public RouterTest, public ::testing::WithParamInterface<Stage> {
 protected:
  void StartHeld() {
    if (GetParam() == Stage::kQueue) return StartWithoutRoom();
    StartReady();
    switch (GetParam()) {
      case Stage::kQueue:
        return;
      case Stage::kGrant:
        return decodes_[0]->Plan({.mute = true});
      case Stage::kPrefill:
        return prefills_[0]->Plan({.hang = Point::kBefore});
      case Stage::kTransfer:
        return prefills_[0]->Plan({.hang = Point::kAfterFirst});
      case Stage::kDecode:
        return decodes_[0]->Plan({.hang_at = 3});
    }
  }
  void WaitForStage() {
    switch (GetParam()) {
      case Stage::kQueue:
        return WaitQueued(1);
      case Stage::kGrant:
        return decodes_[0]->WaitOpenStreams(1);
      case Stage::kPrefill:
      case Stage::kTransfer:
        return prefills_[0]->WaitOpenCalls(1);
      case Stage::kDecode:
        return decodes_[0]->WaitTokensSent(kCanaryTokens + 3);
    }
  }
};

TEST_P(LeavesAt, ACancelStopsAndFreesEverything) {
  StartHeld();
  grpc::ClientContext context;
  auto stream = stub_->Generate(&context, Request(50));
  WaitForStage();
  context.TryCancel();
  setu::v1::GenerateResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  WaitUntil([](const RouterSnapshot& now) { return now.cancelled == 1 && now.running == 0; });
}

TEST_P(LeavesAt, ADeadlineStopsAndFreesEverything) {
  options_.default_deadline = milliseconds(100);
  StartHeld();
  grpc::ClientContext context;  // without a deadline of its own
  auto stream = stub_->Generate(&context, Request(50));
  setu::v1::GenerateResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  const bool got_tokens = GetParam() == Stage::kTransfer || GetParam() == Stage::kDecode;
  const auto last_index = context.GetServerTrailingMetadata().find("last-index");
  ASSERT_NE(last_index, context.GetServerTrailingMetadata().end());
  EXPECT_EQ(last_index->second != "-1", got_tokens) << last_index->second;
  EXPECT_EQ(router_->snapshot().cancelled, 1u);
}

INSTANTIATE_TEST_SUITE_P(Stages, LeavesAt,
                         ::testing::Values(Stage::kQueue, Stage::kGrant, Stage::kPrefill,
                                           Stage::kTransfer, Stage::kDecode));

// A client that reads nothing of the first 256 tokens until told to. On the loop's thread.
class SlowClient final : public ClientSink {
 public:
  void Send(const setu::v1::GenerateResponse& response) override {
    if (response.has_delta()) text += response.delta().text();
    got += response.delta().token_ids_size();
    most_waiting = std::max(most_waiting, got - taken);
    if (got == 256) full.set_value();
    if (got > 256) TakeAll();
  }
  void End(const FlowEnd& end) override { ended.set_value(end.status); }
  void TakeAll() {
    taken = got;
    if (auto f = flow.lock()) f->Took(0, taken);
  }

  std::weak_ptr<RequestFlow> flow;
  std::string text;
  int32_t got = 0;
  int32_t taken = 0;
  int32_t most_waiting = 0;
  std::promise<void> full;
  std::promise<absl::Status> ended;
};

TEST_F(RouterTest, AClientThatDoesNotReadIsWaitedForAndNothingPilesUp) {
  clock_ = &fake_;
  StartReady();
  auto client = std::make_shared<SlowClient>();
  Router::Call call{.caller = *router_->Identify(std::nullopt)};
  call.deadline = clock_->Now() + std::chrono::seconds(600);
  call.sink = client;
  call.admitted = [client](const std::shared_ptr<RequestFlow>& flow) { client->flow = flow; };
  router_->Generate(Request(480).SerializeAsString(), std::move(call));
  client->full.get_future().get();
  fake_.Advance(std::chrono::seconds(60));  // the worker may not send: that is no silence
  router_->loop().PostCompletion([] {});
  router_->loop().PostCompletion([client] { client->TakeAll(); });
  EXPECT_TRUE(client->ended.get_future().get().ok());
  EXPECT_EQ(client->text, workers_.Text(480));
  EXPECT_EQ(client->most_waiting, 256);
  EXPECT_EQ(router_->snapshot().resumes.total(), 0u);
  EXPECT_EQ(decodes_[0]->streams(), 2) << "the canary's and one more";
}

TEST_F(RouterTest, ASlowReaderHoldsUpNobodyElse) {
  StartReady();
  grpc::ClientContext context;
  setu::v1::GenerateRequest request = Request(480);
  auto stream = stub_->Generate(&context, request);
  setu::v1::GenerateResponse response;
  ASSERT_TRUE(stream->Read(&response));
  for (int i = 0; i < 5; ++i) ExpectWhole(Generate(Request(20)), 20);
  uint32_t tokens = 0;
  while (stream->Read(&response)) tokens += response.delta().token_ids_size();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(tokens, 480u);
}

TEST_F(RouterTest, ManyAtOnceAllEndWell) {
  Decode();
  Prefill();
  StartReady();
  std::vector<std::future<test::Answer>> answers;
  for (int i = 0; i < 40; ++i) answers.push_back(GenerateAsync(Request(30)));
  for (auto& answer : answers) ExpectWhole(answer.get(), 30);
}

TEST_F(RouterTest, StopEndsWhatStillRuns) {
  StartReady();
  decodes_[0]->Plan({.hang_at = 2});
  std::future<test::Answer> answer = GenerateAsync(Request(10));
  decodes_[0]->WaitTokensSent(kCanaryTokens + 2);
  std::thread stop([&] { server_->Shutdown(milliseconds(1)); });
  EXPECT_FALSE(answer.get().status.ok());
  stop.join();
}

TEST_F(RouterTest, ADrainingWorkerGetsNothingNew) {
  Decode();
  StartReady();
  worker::v1::WatchLoadResponse load = decodes_[0]->load();
  load.set_draining(true);
  decodes_[0]->Report(load);
  WaitUntil([](const RouterSnapshot& now) { return now.decode_workers == 1; });
  const int before = decodes_[0]->streams();
  for (int i = 0; i < 10; ++i) ExpectWhole(Generate(Request(3)), 3);
  EXPECT_EQ(decodes_[0]->streams(), before);
}

// A retry under a grant of a worker that takes nothing new would wait in front of everybody.
TEST_F(RouterTest, AGrantThatIsWorthNothingIsGivenUp) {
  Decode();
  StartReady();
  prefills_[0]->Plan({.hang = test::PrefillPlan::Point::kBefore});
  auto answer = std::async(std::launch::async, [&] { return Generate(Request(10)); });
  prefills_[0]->WaitOpenCalls(1);
  test::FakeDecode& granted = *decodes_[decodes_[0]->open_streams() > 0 ? 0 : 1];
  worker::v1::WatchLoadResponse load = granted.load();
  load.set_draining(true);
  granted.Report(load);
  WaitUntil([](const RouterSnapshot& now) { return now.decode_workers == 1; });
  prefills_[0]->Kill();
  prefills_[0]->Restart();
  ExpectWhole(answer.get(), 10);
  ExpectWhole(Generate(Request(3)), 3);
}

}  // namespace
}  // namespace setu::router
