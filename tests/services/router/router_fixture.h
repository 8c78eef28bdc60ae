// SPDX-License-Identifier: Apache-2.0
// A whole router in front of scripted workers, in one process without sockets.
#ifndef SETU_TESTS_SERVICES_ROUTER_ROUTER_FIXTURE_H_
#define SETU_TESTS_SERVICES_ROUTER_ROUTER_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/rpc/server.h"
#include "services/router/router.h"
#include "tests/services/router/byte_tokenizer.h"
#include "tests/support/client.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_workers.h"
#include "tests/support/keeping_logger.h"

namespace setu::router {

class MixedCounter final : public FlowObserver {
 public:
  void MixedNumerics() override { ++requests; }
  std::atomic<int> requests = 0;
};

class RouterFixture : public ::testing::Test {
 protected:
  static constexpr int32_t kCanaryTokens = 2;  // count in a decode worker's totals

  // A pair that is tried again at once.
  void SetUp() override {
    options_.workers.circuit.first = std::chrono::milliseconds(1);
    options_.flow.avoid_full = std::chrono::milliseconds(1);
    Prefill();
    Decode();
  }
  // Ends everything and checks that nothing is left.
  void TearDown() override {
    if (router_ == nullptr) return;
    for (const auto& decode : decodes_) decode->WaitOpenStreams(0);
    for (const auto& prefill : prefills_) prefill->WaitOpenCalls(0);
    RouterSnapshot now = router_->snapshot();
    while (now.running > 0 || now.queue_length > 0) {
      std::this_thread::yield();
      now = router_->snapshot();
    }
    EXPECT_EQ(now.admitted, now.finished + now.failed + now.cancelled);
    router_->BeginDrain();
    EXPECT_TRUE(router_->WaitDrained(std::chrono::seconds(10)));
    server_->Shutdown(std::chrono::seconds(5));
    router_->Stop();
  }

  test::FakePrefill& Prefill() {
    prefills_.push_back(&workers_.AddPrefill("prefill-" + std::to_string(prefills_.size())));
    options_.workers.prefill.push_back(prefills_.back()->address());
    return *prefills_.back();
  }
  test::FakeDecode& Decode() {
    decodes_.push_back(&workers_.AddDecode("decode-" + std::to_string(decodes_.size())));
    options_.workers.decode.push_back(decodes_.back()->address());
    return *decodes_.back();
  }

  // Starts a router over the workers added so far; does not wait for it to be ready.
  void Start() {
    ModelInfo model;
    model.name = "letters";
    model.context_length = 512;
    model.tokenizer_digest = test::FakeWorkers::kTokenizer;
    router_ = std::make_unique<Router>(options_, std::move(tokenizer_), std::move(model),
                                       workers_.network(), *clock_, logger_, observer_);
    auto server = rpc::Server::Start({}, router_->services());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = setu::v1::InferenceService::NewStub(server_->InProcessChannel());
  }

  // After the canary: its streams and calls count in the workers' totals.
  void StartReady() {
    Start();
    WaitReady(true);
    for (const auto& decode : decodes_) decode->WaitOpenStreams(0);
    for (const auto& prefill : prefills_) prefill->WaitOpenCalls(0);
  }

  void WaitReady(bool ready) {
    auto done = std::make_shared<std::promise<void>>();
    router_->OnReadiness([done, ready, told = false](bool now) mutable {
      if (now == ready && !std::exchange(told, true)) done->set_value();
    });
    done->get_future().get();
  }

  // Room for the canary alone: then requests for 50 tokens wait in the queue.
  void StartWithoutRoom() {
    SetFree(1);
    StartReady();
  }
  void SetFree(uint32_t blocks) {
    worker::v1::WatchLoadResponse load = decodes_[0]->load();
    load.set_blocks_free(blocks);
    decodes_[0]->Report(load);
  }
  void WaitUntil(const std::function<bool(const RouterSnapshot&)>& holds) {
    while (!holds(router_->snapshot())) std::this_thread::yield();
  }
  void WaitQueued(size_t length) {
    WaitUntil([=](const RouterSnapshot& now) { return now.queue_length == length; });
  }

  static setu::v1::GenerateRequest Request(uint32_t max_tokens, uint32_t n = 1) {
    setu::v1::GenerateRequest request = test::GreedyRequest({1, 2, 3}, max_tokens);
    request.mutable_sampling()->set_n(n);
    return request;
  }
  test::Answer Generate(const setu::v1::GenerateRequest& request,
                        const test::CallOptions& options = {}) {
    return test::Generate(*stub_, request, options);
  }
  std::future<test::Answer> GenerateAsync(const setu::v1::GenerateRequest& request,
                                          const test::CallOptions& options = {}) {
    return std::async(std::launch::async, [=, this] { return Generate(request, options); });
  }

  // The answer that workers without misfortunes would have given.
  void ExpectWhole(const test::Answer& answer, int32_t tokens, uint32_t choices = 1) {
    EXPECT_TRUE(answer.ok()) << answer.Explain();
    ASSERT_EQ(answer.choices.size(), choices);
    for (const auto& [number, choice] : answer.choices) {
      EXPECT_EQ(choice.text, workers_.Text(tokens, number));
      ASSERT_EQ(choice.finished.size(), 1u);
      EXPECT_EQ(choice.finished[0].usage().completion_tokens(), static_cast<uint32_t>(tokens));
    }
  }

  RouterOptions options_;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer_ = std::make_unique<ByteTokenizer>();
  test::FakeWorkers workers_;
  std::vector<test::FakePrefill*> prefills_;
  std::vector<test::FakeDecode*> decodes_;
  SteadyClock steady_;
  testing::FakeClock fake_;
  const Clock* clock_ = &steady_;
  test::KeepingLogger logger_;
  MixedCounter observer_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<setu::v1::InferenceService::Stub> stub_;
};

}  // namespace setu::router

#endif  // SETU_TESTS_SERVICES_ROUTER_ROUTER_FIXTURE_H_
