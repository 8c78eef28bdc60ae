// SPDX-License-Identifier: Apache-2.0
// A prefill and a decode worker, joined as in a cluster, with the test as their router.
//
//   class MyTest : public WorkerPair { void SetUp() override { Start(Load(), Load(), 16, clock_); }
//   }; const auto call = Begin(decode::Prompt("u", 60, 20)); Ids ids = Finish(*call);
#ifndef SETU_TESTS_INTEGRATION_WORKER_PAIR_H_
#define SETU_TESTS_INTEGRATION_WORKER_PAIR_H_

#include <gtest/gtest.h>

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

namespace setu {

using worker::v1::DecodeRequest;
using worker::v1::DecodeResponse;
using Ids = std::map<uint32_t, std::vector<engine::TokenId>>;  // by choice

inline constexpr std::chrono::seconds kLong(30);
inline constexpr std::chrono::hours kForever(1000);

class WorkerPair : public ::testing::Test {
 protected:
  // No wait for the other side ends by a timer.
  void Start(std::unique_ptr<engine::ModelRunner> prefill_runner,
             std::unique_ptr<engine::ModelRunner> decode_runner, int32_t chunk_tokens,
             const Clock& clock) {
    decode::WorkerOptions patient;
    patient.transfer_stall = patient.stall_limit = kForever;
    decode_ = std::make_unique<decode::Worker>(patient, std::move(decode_runner), clock, logger_);
    decode_server_ = Serve(decode_->services());
    network_.Put("decode", decode_server_.get());
    prefill::WorkerOptions options;
    options.loop.chunk_tokens = chunk_tokens;
    options.loop.push_deadline = kForever;
    prefill_ = std::make_unique<prefill::Worker>(options, std::move(prefill_runner),
                                                 /*staging=*/nullptr, network_, clock, logger_);
    prefill_server_ = Serve(prefill_->services());
    decode_stub_ = worker::v1::DecodeService::NewStub(decode_server_->InProcessChannel());
    prefill_stub_ = worker::v1::PrefillService::NewStub(prefill_server_->InProcessChannel());
  }

  void TearDown() override {
    prefill_->BeginDrain();
    EXPECT_TRUE(prefill_->WaitDrained(kLong));
    decode_->BeginDrain();
    EXPECT_TRUE(decode_->WaitDrained(kLong));
    EXPECT_EQ(prefill_->snapshot().blocks_free, prefill_->snapshot().blocks_total);
    EXPECT_EQ(decode_->snapshot().blocks_held, 0);
    EXPECT_EQ(decode_->snapshot().blocks_promised, 0);
    prefill_->Stop();
    decode_->Stop();
    prefill_server_->Shutdown(kLong);
    decode_server_->Shutdown(kLong);
    network_.TakeOff("decode");
  }

  static std::unique_ptr<rpc::Server> Serve(std::vector<grpc::Service*> services) {
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

  NullLogger logger_;
  test::InProcessNetwork network_;
  std::unique_ptr<decode::Worker> decode_;
  std::unique_ptr<rpc::Server> decode_server_;
  std::unique_ptr<prefill::Worker> prefill_;
  std::unique_ptr<rpc::Server> prefill_server_;
  std::unique_ptr<worker::v1::DecodeService::Stub> decode_stub_;
  std::unique_ptr<worker::v1::PrefillService::Stub> prefill_stub_;
};

}  // namespace setu

#endif  // SETU_TESTS_INTEGRATION_WORKER_PAIR_H_
