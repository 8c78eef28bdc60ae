// SPDX-License-Identifier: Apache-2.0
// Decode streams whose messages cannot go out: what waits, waits beside the loop.
#include "services/decode/decode_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "services/decode/worker.h"
#include "tests/services/decode/fake_prefill.h"
#include "tests/services/decode/router_stream.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"
#include "tests/support/wait_until.h"

namespace setu::decode {
namespace {

constexpr std::chrono::seconds kLong(30);

// Holds the messages of Decode streams behind the first one until it is let go.
class HeldWrites final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit HeldWrites(std::shared_future<void> go_on) : go_on_(std::move(go_on)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* rpc) override {
    const bool decode = std::string_view(rpc->method()).ends_with("/Decode");
    return new Interceptor(decode ? go_on_ : std::shared_future<void>());
  }

 private:
  class Interceptor final : public grpc::experimental::Interceptor {
   public:
    explicit Interceptor(std::shared_future<void> go_on) : go_on_(std::move(go_on)) {}
    void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
      using grpc::experimental::InterceptionHookPoints;
      if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE) &&
          std::exchange(first_was_sent_, true) && go_on_.valid()) {
        go_on_.wait();
      }
      methods->Proceed();
    }

   private:
    const std::shared_future<void> go_on_;
    bool first_was_sent_ = false;
  };
  const std::shared_future<void> go_on_;
};

class DecodeServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> held;
    held.push_back(std::make_unique<HeldWrites>(go_on_.get_future().share()));
    builder.experimental().SetInterceptorCreators(std::move(held));
    for (grpc::Service* service : worker_.services()) builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    const std::shared_ptr<grpc::Channel> channel = server_->InProcessChannel({});
    decode_ = worker::v1::DecodeService::NewStub(channel);
    transfer_ = worker::v1::KvTransferService::NewStub(channel);
  }

  void TearDown() override {
    worker_.Stop();
    server_->Shutdown();  // returns once every call is over
    const Snapshot snapshot = worker_.snapshot();
    EXPECT_EQ(snapshot.blocks_held, 0);
    EXPECT_EQ(snapshot.blocks_promised, 0);
  }

  // Until the batch has it; of what is said about it, only the room has gone out.
  void Start(RouterStream& stream, const wire::Sequence& sequence) {
    stream.Open(sequence);
    EXPECT_TRUE(stream.Read()->has_ready());
    EXPECT_TRUE(Push(*transfer_, prefill_.Compute(sequence, 1)).ok());
  }

  const test::TempDir dir_;
  const std::string model_ = test::WriteTinyModel(dir_);
  FakePrefill prefill_{model_};
  const SteadyClock clock_;
  NullLogger logger_;
  Worker worker_{{.unsent_tokens = 8}, LoadTiny(model_, 64), clock_, logger_};
  std::promise<void> go_on_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<worker::v1::DecodeService::Stub> decode_;
  std::unique_ptr<worker::v1::KvTransferService::Stub> transfer_;
};

TEST_F(DecodeServiceTest, AWriteThatTakesLongHoldsUpNoStep) {
  const wire::Sequence sequence = Prompt("u", 10, 8);
  RouterStream stream(*decode_);
  Start(stream, sequence);
  EXPECT_TRUE(test::WaitUntil(kLong, [&] { return worker_.snapshot().finished == 1; }))
      << "all steps were taken though nothing could be written";
  go_on_.set_value();
  EXPECT_EQ(stream.ReadTokens()[0], prefill_.Alone(sequence, 0)) << "nothing is lost, in order";
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(DecodeServiceTest, AnErrorComesAfterAllThatWasSaidBefore) {
  const wire::Sequence sequence = Prompt("u", 10, 400);
  RouterStream stream(*decode_);
  Start(stream, sequence);
  EXPECT_TRUE(test::WaitUntil(kLong, [&] { return worker_.snapshot().tokens >= 3; }));
  worker_.Stop();
  EXPECT_TRUE(test::WaitUntil(kLong, [&] { return worker_.snapshot().failed == 1; }));
  const uint64_t generated = 1 + worker_.snapshot().tokens;  // the first one came with the KV
  go_on_.set_value();
  std::vector<engine::TokenId> alone = prefill_.Alone(sequence, 0);
  alone.resize(generated);
  EXPECT_EQ(stream.ReadTokens()[0], alone);
  EXPECT_TRUE(absl::IsUnavailable(stream.Finish()));
}

TEST_F(DecodeServiceTest, ARouterThatGoesAwayFreesItsRoomThoughItsMessagesWait) {
  RouterStream stream(*decode_);
  Start(stream, Prompt("u", 10, 400));
  EXPECT_TRUE(test::WaitUntil(kLong, [&] { return worker_.snapshot().tokens >= 3; }));
  stream.Cancel();
  EXPECT_TRUE(test::WaitUntil(kLong, [&] { return worker_.snapshot().cancelled == 1; }));
  EXPECT_EQ(worker_.snapshot().blocks_held, 0);
  go_on_.set_value();
  EXPECT_TRUE(absl::IsCancelled(stream.Finish()));
}

}  // namespace
}  // namespace setu::decode
