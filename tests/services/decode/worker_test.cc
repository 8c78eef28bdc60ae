// SPDX-License-Identifier: Apache-2.0
// The whole worker over gRPC, with the test as router and prefill worker.
#include "services/decode/worker.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "common/rpc/server.h"
#include "setu/worker/v1/worker.grpc.pb.h"
#include "tests/services/decode/fake_prefill.h"
#include "tests/services/decode/router_stream.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu::decode {
namespace {

using worker::v1::DecodeRequest;
using worker::v1::DecodeResponse;
constexpr std::chrono::seconds kLong(30);

class WorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    worker_ =
        std::make_unique<Worker>(WorkerOptions{.grant_output_tokens = 100, .incarnation = "i"},
                                 LoadTiny(model_, 64), clock_, logger_);
    auto server = rpc::Server::Start({}, worker_->services());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    const std::shared_ptr<grpc::Channel> channel = server_->InProcessChannel();
    decode_ = worker::v1::DecodeService::NewStub(channel);
    transfer_ = worker::v1::KvTransferService::NewStub(channel);
    describe_ = worker::v1::WorkerService::NewStub(channel);
  }

  void TearDown() override {
    worker_->BeginDrain();
    EXPECT_TRUE(worker_->WaitDrained(kLong)) << "everything ends once its stream has";
    const Snapshot snapshot = worker_->snapshot();
    EXPECT_EQ(snapshot.sequences, 0);
    EXPECT_EQ(snapshot.transfers, 0);
    EXPECT_EQ(snapshot.blocks_held, 0);
    EXPECT_EQ(snapshot.blocks_promised, 0);
    worker_->Stop();
    server_->Shutdown(kLong);
  }

  absl::Status Push(const PushedKv& kv) { return decode::Push(*transfer_, kv); }

  test::TempDir dir_;
  const std::string model_ = test::WriteTinyModel(dir_);
  FakePrefill prefill_{model_};
  SteadyClock clock_;
  NullLogger logger_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<worker::v1::DecodeService::Stub> decode_;
  std::unique_ptr<worker::v1::KvTransferService::Stub> transfer_;
  std::unique_ptr<worker::v1::WorkerService::Stub> describe_;
};

TEST_F(WorkerTest, ManyStreamsAtOnceGetTheTokensOfEachAlone) {
  std::vector<std::unique_ptr<RouterStream>> streams;
  std::vector<wire::Sequence> sequences;
  for (int i = 0; i < 8; ++i) {
    sequences.push_back(Prompt(absl::StrCat("u", i), 10 + 5 * i, 20, {0, 1}));
    streams.push_back(std::make_unique<RouterStream>(*decode_));
    streams[i]->Open(sequences[i]);
    const std::optional<DecodeResponse> ready = streams[i]->Read();
    ASSERT_TRUE(ready.has_value());
    EXPECT_EQ(ready->ready().attempt(), 1u);
    const absl::Status pushed = Push(prefill_.Compute(sequences[i], 1));
    EXPECT_TRUE(pushed.ok()) << pushed;
  }
  for (int i = 0; i < 8; ++i) {
    const auto ids = streams[i]->ReadTokens();
    for (uint32_t choice : {0, 1}) {
      EXPECT_EQ(ids.at(choice), prefill_.Alone(sequences[i], choice));
    }
    EXPECT_TRUE(streams[i]->Finish().ok());
  }
}

TEST_F(WorkerTest, ARouterThatHasNoMoreToSayStillGetsItsTokens) {
  const wire::Sequence sequence = Prompt("u", 10, 20);
  RouterStream stream(*decode_);
  stream.Open(sequence);
  stream.HalfClose();
  EXPECT_TRUE(stream.Read()->has_ready());
  EXPECT_TRUE(Push(prefill_.Compute(sequence, 1)).ok());
  EXPECT_EQ(stream.ReadTokens()[0], prefill_.Alone(sequence, 0));
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(WorkerTest, ACancelledStreamIsAnEndedLease) {
  for (const bool committed : {false, true}) {
    // Another uuid each time: the loop may still hold the lease when the client's end is known.
    const wire::Sequence sequence = Prompt(committed ? "v" : "u", 10, 400);
    RouterStream stream(*decode_);
    stream.Open(sequence);
    EXPECT_TRUE(stream.Read()->has_ready());
    if (committed) {
      EXPECT_TRUE(Push(prefill_.Compute(sequence, 1)).ok());
      EXPECT_TRUE(stream.Read()->has_committed());
      EXPECT_TRUE(stream.Read()->has_tokens());
    }
    stream.Cancel();
    EXPECT_TRUE(absl::IsCancelled(stream.Finish()));
  }
}

TEST_F(WorkerTest, AStreamIsOneOpenThenOtherMessages) {
  DecodeRequest retry;
  retry.mutable_retry()->set_attempt(2);
  {
    RouterStream stream(*decode_);
    stream.Write(retry);
    EXPECT_FALSE(stream.Read().has_value());
    EXPECT_TRUE(absl::IsInvalidArgument(stream.Finish()));
  }
  {
    RouterStream stream(*decode_);
    stream.HalfClose();
    EXPECT_TRUE(absl::IsInvalidArgument(stream.Finish()));
  }
  {
    wire::Sequence sequence = Prompt("u", 10, 400);
    sequence.ids[3] = test::kTinyVocabulary;
    RouterStream stream(*decode_);
    stream.Open(sequence);
    EXPECT_TRUE(absl::IsInvalidArgument(stream.Finish()));
  }
  {
    RouterStream stream(*decode_);
    stream.Open(Prompt("u", 10, 400));
    EXPECT_TRUE(stream.Read()->has_ready());
    stream.Open(Prompt("u", 10, 400), 2);
    EXPECT_TRUE(absl::IsInvalidArgument(stream.Finish()));
  }
}

TEST_F(WorkerTest, ControlsReachTheLoop) {
  const wire::Sequence sequence = Prompt("u", 10, 30, {0, 1});
  RouterStream stream(*decode_);
  stream.Open(sequence);
  EXPECT_TRUE(stream.Read()->has_ready());
  DecodeRequest request;
  request.mutable_retry()->set_attempt(7);
  stream.Write(request);
  EXPECT_EQ(stream.Read()->ready().attempt(), 7u);
  request.mutable_stop_choice()->set_choice(1);
  stream.Write(request);
  request.mutable_retry()->set_attempt(8);  // a round trip: the stop is taken
  stream.Write(request);
  EXPECT_EQ(stream.Read()->ready().attempt(), 8u);
  EXPECT_TRUE(absl::IsNotFound(Push(prefill_.Compute(sequence, 7))));
  EXPECT_TRUE(Push(prefill_.Compute(sequence, 8)).ok());
  const auto ids = stream.ReadTokens();
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_EQ(ids.at(0), prefill_.Alone(sequence, 0));
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(WorkerTest, DrainTellsTheStreamsAndRefusesOthers) {
  RouterStream stream(*decode_);
  stream.Open(Prompt("u", 10, 20));
  EXPECT_TRUE(stream.Read()->has_ready());
  grpc::ClientContext context;
  worker::v1::DrainResponse response;
  ASSERT_TRUE(describe_->Drain(&context, {}, &response).ok());
  EXPECT_TRUE(stream.Read()->has_draining());
  RouterStream late(*decode_);
  late.Open(Prompt("v", 10, 20));
  EXPECT_TRUE(absl::IsUnavailable(late.Finish()));
  EXPECT_FALSE(worker_->WaitDrained(Duration::zero()));
  EXPECT_TRUE(Push(prefill_.Compute(Prompt("u", 10, 20), 1)).ok());
  EXPECT_EQ(stream.ReadTokens()[0].size(), 20u);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(WorkerTest, StopEndsEveryStream) {
  RouterStream stream(*decode_);
  stream.Open(Prompt("u", 10, 400));
  EXPECT_TRUE(stream.Read()->has_ready());
  worker_->Stop();
  EXPECT_TRUE(absl::IsUnavailable(stream.Finish()));
}

TEST_F(WorkerTest, TheServerStopsWithStreamsOpen) {
  RouterStream stream(*decode_);
  stream.Open(Prompt("u", 10, 400));
  EXPECT_TRUE(stream.Read()->has_ready());
  server_->Shutdown(Duration::zero());
  EXPECT_FALSE(stream.Finish().ok());
}

TEST_F(WorkerTest, DescribesItselfAndReportsItsLoad) {
  grpc::ClientContext context;
  worker::v1::DescribeResponse description;
  ASSERT_TRUE(describe_->Describe(&context, {}, &description).ok());
  EXPECT_EQ(description.role(), worker::v1::ROLE_DECODE);
  EXPECT_EQ(description.incarnation(), "i");
  EXPECT_EQ(description.grant_output_tokens(), 100u);
  EXPECT_EQ(description.pool_tokens(), 1024u);
  EXPECT_EQ(description.fingerprint().kv_layout().layers(), 2u);

  grpc::ClientContext watch_context;
  const auto watch = describe_->WatchLoad(&watch_context, {});
  worker::v1::WatchLoadResponse report;
  ASSERT_TRUE(watch->Read(&report));
  EXPECT_TRUE(report.ready());
  EXPECT_EQ(report.blocks_total(), 64u);
  EXPECT_EQ(report.blocks_free(), 64u);
  EXPECT_EQ(report.running_max(), 64u);
  RouterStream stream(*decode_);
  stream.Open(Prompt("u", 10, 20, {0, 1, 2}));
  EXPECT_TRUE(stream.Read()->has_ready());
  while (report.running() == 0) ASSERT_TRUE(watch->Read(&report));
  EXPECT_EQ(report.running(), 3u);
  EXPECT_EQ(report.blocks_free(), 64u - 1 - 3 - 2) << "prompt, output, two copies";
  watch_context.TryCancel();
  watch->Finish();
  stream.Cancel();
}

TEST_F(WorkerTest, TheCapacityLineNamesWhatFits) {
  const std::string line = worker_->capacity_line();
  for (const char* part :
       {"64 blocks x 16 tokens = 1024 tokens", "batch 64", "f32/kv-f32", "1 threads"}) {
    EXPECT_THAT(line, ::testing::HasSubstr(part));
  }
}

}  // namespace
}  // namespace setu::decode
