// SPDX-License-Identifier: Apache-2.0
// A prefill and a decode worker, joined as in a cluster, with the test as their router: chunked
// prompts, frames while they compute, forks and cancels give the tokens of a runner alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/server.h"
#include "services/decode/worker.h"
#include "services/prefill/worker.h"
#include "setu/worker/v1/decode.grpc.pb.h"
#include "setu/worker/v1/prefill.grpc.pb.h"
#include "tests/services/decode/fake_prefill.h"
#include "tests/support/in_process_network.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu {
namespace {

using worker::v1::DecodeRequest;
using worker::v1::DecodeResponse;
using Ids = std::map<uint32_t, std::vector<engine::TokenId>>;  // by choice

constexpr std::chrono::seconds kLong(30);

class WorkerPairTest : public ::testing::Test {
 protected:
  void SetUp() override {
    decode_ = std::make_unique<decode::Worker>(decode::WorkerOptions{},
                                               decode::LoadTiny(model_, 64), clock_, logger_);
    decode_server_ = Start(decode_->services());
    network_.Put("decode", decode_server_.get());
    prefill::WorkerOptions options;
    options.loop.chunk_tokens = 16;
    prefill_ = std::make_unique<prefill::Worker>(options, decode::LoadTiny(model_, 64), network_,
                                                 clock_, logger_);
    prefill_server_ = Start(prefill_->services());
    decode_stub_ = worker::v1::DecodeService::NewStub(decode_server_->InProcessChannel());
    prefill_stub_ = worker::v1::PrefillService::NewStub(prefill_server_->InProcessChannel());
  }

  void TearDown() override {
    prefill_->BeginDrain();
    EXPECT_TRUE(prefill_->WaitDrained(kLong));
    decode_->BeginDrain();
    EXPECT_TRUE(decode_->WaitDrained(kLong));
    EXPECT_EQ(prefill_->snapshot().blocks_free, 64);
    EXPECT_EQ(decode_->snapshot().blocks_held, 0);
    EXPECT_EQ(decode_->snapshot().blocks_promised, 0);
    prefill_->Stop();
    decode_->Stop();
    prefill_server_->Shutdown(kLong);
    decode_server_->Shutdown(kLong);
    network_.TakeOff("decode");
  }

  static std::unique_ptr<rpc::Server> Start(std::vector<grpc::Service*> services) {
    auto server = rpc::Server::Start({.max_receive_bytes = 64 << 20}, std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }

  // One request as its router sees it; both calls end with this.
  struct Call {
    grpc::ClientContext decode_context, prefill_context;
    std::unique_ptr<grpc::ClientReaderWriter<DecodeRequest, DecodeResponse>> decode;
    std::unique_ptr<grpc::ClientReader<worker::v1::PrefillResponse>> prefill;
  };

  std::unique_ptr<Call> Begin(const wire::Sequence& sequence) {
    auto call = std::make_unique<Call>();
    call->decode = decode_stub_->Decode(&call->decode_context);
    DecodeRequest open;
    *open.mutable_open()->mutable_sequence() = wire::ToProto(sequence);
    open.mutable_open()->set_attempt(1);
    call->decode->Write(open);
    DecodeResponse ready;
    EXPECT_TRUE(call->decode->Read(&ready) && ready.has_ready());
    worker::v1::PrefillRequest request;
    *request.mutable_sequence() = wire::ToProto(sequence);
    request.set_attempt(1);
    request.set_decode_address("decode");
    call->prefill = prefill_stub_->Prefill(&call->prefill_context, request);
    return call;
  }

  // All ids of a call that is left to its end. The first ones come from both workers, equal.
  Ids Finish(Call& call) {
    Ids first, ids;
    worker::v1::PrefillResponse event;
    while (call.prefill->Read(&event)) {
      for (const auto& token : event.first_tokens().tokens()) {
        first[token.choice()].push_back(token.token().id());
      }
    }
    EXPECT_TRUE(call.prefill->Finish().ok());
    DecodeResponse response;
    while (call.decode->Read(&response)) {
      for (const auto& token : response.tokens().tokens()) {
        ids[response.tokens().choice()].push_back(token.id());
      }
    }
    EXPECT_TRUE(call.decode->Finish().ok());
    for (const auto& [choice, tokens] : first) EXPECT_EQ(tokens.front(), ids[choice].front());
    return ids;
  }

  test::TempDir dir_;
  const std::string model_ = test::WriteTinyModel(dir_);
  decode::FakePrefill alone_{model_};
  SteadyClock clock_;
  NullLogger logger_;
  test::InProcessNetwork network_;
  std::unique_ptr<decode::Worker> decode_;
  std::unique_ptr<rpc::Server> decode_server_;
  std::unique_ptr<prefill::Worker> prefill_;
  std::unique_ptr<rpc::Server> prefill_server_;
  std::unique_ptr<worker::v1::DecodeService::Stub> decode_stub_;
  std::unique_ptr<worker::v1::PrefillService::Stub> prefill_stub_;
};

TEST_F(WorkerPairTest, ManyRequestsAtOnceGetTheTokensOfEachAlone) {
  std::vector<wire::Sequence> sequences;
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 8; ++i) {
    sequences.push_back(decode::Prompt(std::string("u") + char('0' + i), 5 + 12 * i, 15, {0, 1}));
    calls.push_back(Begin(sequences[i]));
  }
  for (int i = 0; i < 8; ++i) {
    const Ids ids = Finish(*calls[i]);
    for (uint32_t choice : {0, 1}) {
      EXPECT_EQ(ids.at(choice), alone_.Alone(sequences[i], choice)) << i;
    }
  }
}

// What both count is what the request needs: chunks of 16 in one worker, 19 tokens in the other.
TEST_F(WorkerPairTest, CountTheWorkOfEachStep) {
  const auto call = Begin(decode::Prompt("u", 60, 20));
  EXPECT_EQ(Finish(*call).at(0).size(), 20u);
  prefill_->BeginDrain();
  EXPECT_TRUE(prefill_->WaitDrained(kLong));
  decode_->BeginDrain();
  EXPECT_TRUE(decode_->WaitDrained(kLong));

  const auto runner = decode::LoadTiny(model_, 64);
  const roofline::ModelShape shape =
      roofline::ShapeOf(runner->config(), runner->weights(), runner->fingerprint().layout);
  roofline::StepWork prefill, decode;
  for (int32_t start = 0; start < 60; start += 16) {
    roofline::StepRows rows;
    rows.Add(std::min(16, 60 - start), start, start + 16 >= 60);
    prefill += WorkOf(shape, rows);
  }
  for (int32_t at = 60; at < 79; ++at) decode += WorkOf(shape, roofline::DecodeRows(1, at));
  EXPECT_EQ(prefill_->snapshot().roofline.bytes, prefill.bytes());
  EXPECT_EQ(prefill_->snapshot().roofline.operations, prefill.operations());
  EXPECT_EQ(decode_->snapshot().roofline.bytes, decode.bytes());
  EXPECT_EQ(decode_->snapshot().roofline.operations, decode.operations());
}

TEST_F(WorkerPairTest, CancelledRequestsLeaveTheOthersAlone) {
  const wire::Sequence kept = decode::Prompt("kept", 60, 20);
  std::vector<std::unique_ptr<Call>> cancelled;
  for (char name = 'a'; name < 'e'; ++name) {
    cancelled.push_back(Begin(decode::Prompt(std::string(1, name), 90, 60)));
  }
  const auto call = Begin(kept);
  for (const auto& other : cancelled) {
    other->decode_context.TryCancel();
    other->prefill_context.TryCancel();
  }
  EXPECT_EQ(Finish(*call).at(0), alone_.Alone(kept, 0));
  for (const auto& other : cancelled) {
    EXPECT_FALSE(other->decode->Finish().ok());
    EXPECT_FALSE(other->prefill->Finish().ok());
  }
}

}  // namespace
}  // namespace setu
