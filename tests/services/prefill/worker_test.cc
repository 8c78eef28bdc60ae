// SPDX-License-Identifier: Apache-2.0
#include "services/prefill/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/services/prefill/prefill_fixture.h"

namespace setu::prefill {
namespace {

using ::testing::HasSubstr;

class WorkerTest : public PrefillFixture {
 protected:
  void Start(WorkerOptions options = {}, int32_t blocks = 64) {
    worker_.emplace(options, Load(blocks), /*staging=*/nullptr, channels_, clock_, logger_);
    auto server = rpc::Server::Start({}, worker_->services());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = worker::v1::PrefillService::NewStub(server_->InProcessChannel());
    admin_ = worker::v1::WorkerService::NewStub(server_->InProcessChannel());
  }
  void TearDown() override {
    if (worker_) worker_->Stop();
    server_.reset();
  }

  worker::v1::PrefillRequest Request(uint32_t seed, int32_t tokens) {
    worker::v1::PrefillRequest request;
    *request.mutable_sequence() =
        wire::ToProto(GreedySequence("r" + std::to_string(seed), RandomIds(seed, tokens)));
    request.set_attempt(1);
    request.set_decode_address("decode");
    return request;
  }

  struct Answer {
    std::vector<worker::v1::PrefillResponse> events;
    grpc::Status status;
    bool pushback = false;
  };
  Answer Ask(const worker::v1::PrefillRequest& request) {
    Answer answer;
    grpc::ClientContext context;
    auto reader = stub_->Prefill(&context, request);
    worker::v1::PrefillResponse event;
    while (reader->Read(&event)) answer.events.push_back(event);
    answer.status = reader->Finish();
    answer.pushback = context.GetServerTrailingMetadata().contains("grpc-retry-pushback-ms");
    return answer;
  }

  NullLogger logger_;
  std::optional<Worker> worker_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<worker::v1::PrefillService::Stub> stub_;
  std::unique_ptr<worker::v1::WorkerService::Stub> admin_;
};

TEST_F(WorkerTest, AnswersFirstTokensThenPushed) {
  Start();
  const Answer answer = Ask(Request(1, 100));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  ASSERT_EQ(answer.events.size(), 2u);
  ASSERT_EQ(answer.events[0].first_tokens().tokens_size(), 1);
  EXPECT_EQ(answer.events[1].pushed().kv_bytes(), 7u * kBlockBytes);
  EXPECT_EQ(peer_.WaitForPush(0).commit->first_tokens(0).token().id(),
            answer.events[0].first_tokens().tokens(0).token().id());
}

TEST_F(WorkerTest, MalformedRequestsAreRefusedAndHarmNobody) {
  Start({}, 16);
  auto too_long = Request(1, 257);  // one more than 16 blocks hold
  EXPECT_THAT(Ask(too_long).status.error_message(), HasSubstr("257"));
  EXPECT_THAT(Ask(too_long).status.error_message(), HasSubstr("256"));
  for (const auto& request : {too_long, worker::v1::PrefillRequest()}) {
    const Answer answer = Ask(request);
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_TRUE(answer.events.empty());
  }
  EXPECT_TRUE(Ask(Request(2, 256)).status.ok());  // what just fits
  EXPECT_EQ(worker_->snapshot().admitted, 1u);
}

TEST_F(WorkerTest, TheClientsCancelReachesTheLoop) {
  Start();
  peer_.Misbehave({.after = 1});
  grpc::ClientContext context;
  auto reader = stub_->Prefill(&context, Request(1, 100));
  worker::v1::PrefillResponse event;
  ASSERT_TRUE(reader->Read(&event));
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(peer_.WaitForPush(0).cancelled);
  worker_->BeginDrain();
  EXPECT_TRUE(worker_->WaitDrained(std::chrono::seconds(20)));
  EXPECT_EQ(worker_->snapshot().cancelled, 1u);
  EXPECT_EQ(worker_->snapshot().blocks_free, 64);
}

TEST_F(WorkerTest, TheClientsDeadlineReachesTheLoop) {
  Start();
  peer_.Misbehave({.after = 1});
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  auto reader = stub_->Prefill(&context, Request(1, 100));
  worker::v1::PrefillResponse event;
  while (reader->Read(&event)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  worker_->BeginDrain();
  EXPECT_TRUE(worker_->WaitDrained(std::chrono::seconds(20)));
  EXPECT_EQ(worker_->snapshot().blocks_free, 64);
}

TEST_F(WorkerTest, AFullQueueCarriesARetryHint) {
  Start({.loop = {.queue = 1}}, 32);
  peer_.Misbehave({.after = 1});
  grpc::ClientContext holder_context, queued_context;
  auto holder = stub_->Prefill(&holder_context, Request(1, 500));
  worker::v1::PrefillResponse event;
  ASSERT_TRUE(holder->Read(&event));
  auto queued = stub_->Prefill(&queued_context, Request(2, 100));
  grpc::ClientContext watch_context;
  auto watch = admin_->WatchLoad(&watch_context, {});
  worker::v1::WatchLoadResponse report;
  while (report.queued() != 2) ASSERT_TRUE(watch->Read(&report));  // one of them runs
  const Answer answer = Ask(Request(3, 100));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(answer.pushback);
  EXPECT_FALSE(answer.status.error_details().empty());
  holder_context.TryCancel();
  queued_context.TryCancel();
  holder->Finish();
  queued->Finish();
}

TEST_F(WorkerTest, DescribesItself) {
  Start({.incarnation = "cafe"});
  grpc::ClientContext context;
  worker::v1::DescribeResponse d;
  ASSERT_TRUE(admin_->Describe(&context, {}, &d).ok());
  EXPECT_EQ(d.role(), worker::v1::ROLE_PREFILL);
  EXPECT_EQ(d.incarnation(), "cafe");
  EXPECT_EQ(d.grant_output_tokens(), 0u);
  EXPECT_EQ(d.architecture(), "llama");
  EXPECT_EQ(d.context_length(), 512u);
  EXPECT_EQ(d.pool_tokens(), 1024u);
  EXPECT_EQ(d.fingerprint().kv_layout().layers(), 2u);
  EXPECT_THAT(d.fingerprint().numerics(), HasSubstr("f32"));
  EXPECT_THAT(worker_->capacity_line(), HasSubstr("64 blocks x 16 tokens = 1024 tokens"));
}

TEST_F(WorkerTest, IncarnationsAreRandomUnlessGiven) {
  std::string incarnations[2];
  for (std::string& incarnation : incarnations) {
    TearDown();
    Start();
    grpc::ClientContext context;
    worker::v1::DescribeResponse d;
    ASSERT_TRUE(admin_->Describe(&context, {}, &d).ok());
    incarnation = d.incarnation();
    EXPECT_EQ(incarnation.size(), 16u);
  }
  EXPECT_NE(incarnations[0], incarnations[1]);
}

TEST_F(WorkerTest, LoadReportsFollowThePrompts) {
  Start();
  grpc::ClientContext context;
  auto watch = admin_->WatchLoad(&context, {});
  worker::v1::WatchLoadResponse report;
  ASSERT_TRUE(watch->Read(&report));
  EXPECT_TRUE(report.ready());
  EXPECT_EQ(report.blocks_total(), 64u);
  EXPECT_EQ(report.blocks_free(), 64u);
  peer_.Misbehave({.after = 1});
  grpc::ClientContext prompt_context;
  auto prompt = stub_->Prefill(&prompt_context, Request(1, 100));
  while (report.blocks_free() != 57) ASSERT_TRUE(watch->Read(&report));
  EXPECT_EQ(report.running(), 1u);
  prompt_context.TryCancel();
  prompt->Finish();
  while (report.blocks_free() != 64) ASSERT_TRUE(watch->Read(&report));
}

TEST_F(WorkerTest, TheDrainCallDrains) {
  Start();
  grpc::ClientContext context;
  worker::v1::DrainResponse response;
  ASSERT_TRUE(admin_->Drain(&context, {}, &response).ok());
  EXPECT_TRUE(worker_->WaitDrained(std::chrono::seconds(20)));
  EXPECT_EQ(Ask(Request(1, 100)).status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(WorkerTest, TheServerStopsWhilePromptsRun) {
  Start();
  peer_.Misbehave({.after = 1});
  grpc::ClientContext context;
  auto reader = stub_->Prefill(&context, Request(1, 100));
  worker::v1::PrefillResponse event;
  ASSERT_TRUE(reader->Read(&event));
  server_->Shutdown(Duration::zero());  // before the worker: its streams are cancelled
  EXPECT_FALSE(reader->Finish().ok());
}

}  // namespace
}  // namespace setu::prefill
