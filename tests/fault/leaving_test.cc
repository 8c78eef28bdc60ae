// SPDX-License-Identifier: Apache-2.0
// Processes that go while streams run: a router that is killed, and whoever is told to stop. What
// runs ends as promised, nothing new is taken, and no process stays longer than its grace.
#include <grpc/health/v1/health.grpc.pb.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/fault_plan.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"
#include "tests/support/wait_until.h"

namespace setu::test {
namespace {

using grpc::StatusCode;
using std::chrono::seconds;

// As little as gRPC can be made to read ahead of a client.
std::shared_ptr<grpc::Channel> NarrowChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1024);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// Clients that have a token each and read no further until they are let go.
class HeldStreams {
 public:
  HeldStreams(const ProcessCluster& cluster, const v1::GenerateRequest& request, int count)
      : stub_(v1::InferenceService::NewStub(NarrowChannel(cluster.address()))) {
    for (int i = 0; i < count; ++i) {
      answers_.push_back(std::async(std::launch::async, [this, request] {
        return Generate(*stub_, request, ActAfter(1, [this] {
          ++holding_;
          let_go_.wait(false);
          return true;
        }));
      }));
    }
  }
  ~HeldStreams() { LetGo(); }

  bool WaitHolding() const {
    return WaitUntil(seconds(20), [&] { return holding_ == static_cast<int>(answers_.size()); });
  }
  std::vector<Answer> LetGo() {
    let_go_ = true;
    let_go_.notify_all();
    std::vector<Answer> answers;
    for (auto& answer : answers_) answers.push_back(answer.get());
    answers_.clear();
    return answers;
  }

 private:
  const std::unique_ptr<v1::InferenceService::Stub> stub_;
  std::atomic<int> holding_ = 0;
  std::atomic<bool> let_go_ = false;
  std::vector<std::future<Answer>> answers_;
};

// What a load balancer sees of a process: its health from now on.
class HealthWatch {
 public:
  explicit HealthWatch(const std::string& address)
      : stub_(grpc::health::v1::Health::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {
    context_.set_wait_for_ready(true);
    context_.set_deadline(std::chrono::system_clock::now() + seconds(30));
    reader_ = stub_->Watch(&context_, {});
  }
  ~HealthWatch() { context_.TryCancel(); }

  // The next that it says; UNKNOWN where it says no more.
  grpc::health::v1::HealthCheckResponse::ServingStatus Next() {
    grpc::health::v1::HealthCheckResponse response;
    return reader_->Read(&response) ? response.status()
                                    : grpc::health::v1::HealthCheckResponse::UNKNOWN;
  }

 private:
  std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<grpc::health::v1::HealthCheckResponse>> reader_;
};
constexpr auto kServing = grpc::health::v1::HealthCheckResponse::SERVING;
constexpr auto kNotServing = grpc::health::v1::HealthCheckResponse::NOT_SERVING;

class Leaving : public ::testing::Test {
 protected:
  // More than is ever on its way to a client that does not read.
  static v1::GenerateRequest EndlessRequest() {
    v1::GenerateRequest request = LongRequest();
    request.mutable_sampling()->set_max_tokens(3900);
    return request;
  }
  static void ExpectDraining(const ProcessCluster& cluster, const char* name) {
    EXPECT_TRUE(WaitUntil(seconds(5), [&] { return cluster.Metric(name, "setu_draining") == 1; }));
  }
  void ExpectBeginning(Answer answer) const {
    EXPECT_TRUE(answer.broken.empty()) << answer.Explain();
    EXPECT_LT(answer.ids().size(), expected_.size()) << "it was not running any more";
    EXPECT_TRUE(std::equal(answer.ids().begin(), answer.ids().end(), expected_.begin()))
        << answer.Explain();
  }
  void ExpectWhole(Answer answer) const {
    EXPECT_TRUE(answer.ok()) << answer.Explain();
    EXPECT_EQ(answer.ids(), expected_);
  }

  TempDir dir_;
  const std::string model_ = WriteTinyModel(dir_, {.context = 4096});
  const std::vector<uint32_t> expected_ = ReferenceIds({.model = model_}, EndlessRequest());
};

TEST_F(Leaving, ARouterThatIsKilledLeavesNoOrphansAndTheNextOneServes) {
  ProcessCluster cluster({.model = model_, .prefill_workers = 2, .decode_workers = 2});
  ASSERT_TRUE(cluster.WaitReady());
  HeldStreams streams(cluster, EndlessRequest(), 4);
  ASSERT_TRUE(streams.WaitHolding());
  cluster.Kill("router");
  EXPECT_EQ(cluster.Quiesce(), "") << "held for a router that is gone";
  for (Answer& answer : streams.LetGo()) {
    EXPECT_EQ(answer.status.error_code(), StatusCode::UNAVAILABLE) << answer.Explain();
    ExpectBeginning(std::move(answer));
  }
  cluster.Start("router");
  EXPECT_TRUE(cluster.WaitReady(seconds(10)));
  ExpectWhole(Generate(cluster.stub(), EndlessRequest()));
  EXPECT_EQ(cluster.Quiesce(), "");
}

TEST_F(Leaving, ARouterToldToStopFinishesWhatRunsAndRefusesWhatComes) {
  ProcessCluster cluster({.model = model_});
  ASSERT_TRUE(cluster.WaitReady());
  HealthWatch health(cluster.address());
  EXPECT_EQ(health.Next(), kServing);
  HeldStreams streams(cluster, EndlessRequest(), 4);
  ASSERT_TRUE(streams.WaitHolding());
  cluster.Signal("router", SIGTERM);
  EXPECT_EQ(health.Next(), kNotServing);
  ExpectDraining(cluster, "router");
  const Answer refused = Generate(cluster.stub(), EndlessRequest());
  EXPECT_EQ(refused.status.error_code(), StatusCode::UNAVAILABLE) << refused.Explain();
  EXPECT_TRUE(refused.started.empty()) << refused.Explain();
  EXPECT_EQ(cluster.Metric("router", "setu_num_requests_running"), 4);
  for (Answer& answer : streams.LetGo()) ExpectWhole(std::move(answer));
  EXPECT_EQ(cluster.WaitEnd("router", seconds(10)), "exit 0");
  EXPECT_EQ(cluster.Quiesce(), "");
}
// Alone, so that nobody else can take over what it has.
TEST_F(Leaving, TheOnlyDecodeWorkerFinishesWhatRunsAndGetsNothingNew) {
  ProcessCluster cluster({.model = model_});
  ASSERT_TRUE(cluster.WaitReady());
  HealthWatch health(cluster.address("decode-0"));
  EXPECT_EQ(health.Next(), kServing);
  HeldStreams streams(cluster, EndlessRequest(), 4);
  ASSERT_TRUE(streams.WaitHolding());
  cluster.Signal("decode-0", SIGTERM);
  EXPECT_EQ(health.Next(), kNotServing);
  ExpectDraining(cluster, "decode-0");
  ASSERT_TRUE(
      WaitUntil(seconds(5), [&] { return cluster.Metric("router", "setu_decode_workers") == 0; }));
  const Answer refused = Generate(cluster.stub(), EndlessRequest());
  EXPECT_EQ(refused.status.error_code(), StatusCode::UNAVAILABLE) << refused.Explain();
  EXPECT_TRUE(refused.started.empty()) << refused.Explain();
  EXPECT_EQ(cluster.Metric("router", "setu_num_requests_running"), 4);
  for (Answer& answer : streams.LetGo()) ExpectWhole(std::move(answer));
  EXPECT_EQ(cluster.WaitEnd("decode-0", seconds(10)), "exit 0");
  EXPECT_EQ(cluster.Quiesce(), "");
}

TEST_F(Leaving, ADecodeWorkerHandsOverStreamsThatNobodyReads) {
  ProcessCluster cluster({.model = model_, .decode_workers = 2});
  ASSERT_TRUE(cluster.WaitReady());
  ASSERT_TRUE(cluster.WaitSeen("decode"));
  HealthWatch health(cluster.address("decode-0"));
  EXPECT_EQ(health.Next(), kServing);
  HeldStreams streams(cluster, EndlessRequest(), 4);
  ASSERT_TRUE(streams.WaitHolding());
  ASSERT_GT(cluster.Metric("decode-0", "setu_num_requests_running"), 0);
  cluster.Signal("decode-0", SIGTERM);
  EXPECT_EQ(health.Next(), kNotServing);
  EXPECT_EQ(cluster.WaitEnd("decode-0", seconds(10)), "exit 0");
  for (Answer& answer : streams.LetGo()) ExpectWhole(std::move(answer));
  EXPECT_EQ(cluster.Quiesce(), "");
}

// A prompt of a hundred chunks, whose first KV has just left.
TEST(LeavingMidPrompt, APrefillWorkerFinishesItsPromptAndGetsNothingNew) {
  TempDir dir;
  const std::string model =
      WriteTinyModel(dir, {.layers = 4, .hidden = 256, .ffn_hidden = 512, .context = 2048});
  const v1::GenerateRequest request =
      GreedyRequest(std::vector<uint32_t>(1600, kTinyFirstByte + 'm'), 20);
  const std::vector<uint32_t> expected = ReferenceIds({.model = model}, request);
  FaultPlan plan;
  ProcessCluster cluster(
      {.model = model, .prefill_flags = {"--chunk-tokens", "16"}, .watch = plan.watch()});
  ASSERT_TRUE(cluster.WaitReady());
  HealthWatch health(cluster.address("prefill-0"));
  EXPECT_EQ(health.Next(), kServing);
  plan.Arm({.at = FaultPlan::MessageOf("PushKv", 1),
            .role = "prefill",
            .act = [&](const std::string& worker) { cluster.Signal(worker, SIGTERM); },
            .arrives = true,
            .rest = GrpcProxy::Verdict::kPass});
  auto running = std::async(std::launch::async, [&] { return Generate(cluster.stub(), request); });
  EXPECT_EQ(health.Next(), kNotServing);
  ASSERT_TRUE(
      WaitUntil(seconds(5), [&] { return cluster.Metric("router", "setu_prefill_workers") == 0; }));
  const Answer refused = Generate(cluster.stub(), request);
  EXPECT_EQ(refused.status.error_code(), StatusCode::UNAVAILABLE) << refused.Explain();
  Answer answer = running.get();
  EXPECT_EQ(plan.Disarm(), "prefill-0");
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.ids(), expected);
  EXPECT_EQ(cluster.WaitEnd("prefill-0", seconds(10)), "exit 0");
  EXPECT_EQ(cluster.Quiesce(), "");
}
// Told to stop with a stream whose client never reads again: each service goes when its grace is
// over, which is long before that stream would end.
class ShortGrace : public Leaving {
 protected:
  static constexpr seconds kBound{5};  // half a second of grace, one for what was cancelled
  ProcessCluster::Options Options() const {
    const std::vector<std::string> grace = {"--drain-grace", "500ms"};
    return {.model = model_, .prefill_flags = grace, .decode_flags = grace, .router_flags = grace};
  }
};

TEST_F(ShortGrace, EndsARouterWithAStuckReader) {
  ProcessCluster cluster(Options());
  ASSERT_TRUE(cluster.WaitReady());
  HeldStreams streams(cluster, EndlessRequest(), 2);
  ASSERT_TRUE(streams.WaitHolding());
  cluster.Signal("router", SIGTERM);
  EXPECT_EQ(cluster.WaitEnd("router", kBound), "exit 0");
  EXPECT_EQ(cluster.Quiesce(), "");
  for (Answer& answer : streams.LetGo()) {
    EXPECT_FALSE(answer.status.ok()) << answer.Explain();
    ExpectBeginning(std::move(answer));
  }
}

TEST_F(ShortGrace, EndsADecodeWorkerWithAStuckReader) {
  ProcessCluster::Options options = Options();
  options.router_flags.insert(options.router_flags.end(), {"--resume-timeout", "500ms"});
  ProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitReady());
  HeldStreams streams(cluster, EndlessRequest(), 2);
  ASSERT_TRUE(streams.WaitHolding());
  cluster.Signal("decode-0", SIGTERM);
  EXPECT_EQ(cluster.WaitEnd("decode-0", kBound), "exit 0");
  for (Answer& answer : streams.LetGo()) {
    EXPECT_EQ(answer.status.error_code(), StatusCode::UNAVAILABLE) << answer.Explain();
    ExpectBeginning(std::move(answer));
  }
  EXPECT_EQ(cluster.Quiesce(), "");
}

// Nothing of its push arrives any more, and nobody says so.
TEST_F(ShortGrace, EndsAPrefillWorkerWithAPushThatCannotEnd) {
  FaultPlan plan;
  ProcessCluster::Options options = Options();
  options.watch = plan.watch();
  options.router_flags.insert(options.router_flags.end(), {"--resume-timeout", "500ms"});
  ProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitReady());
  std::promise<void> stuck;
  plan.Arm({.at = FaultPlan::Commit(),
            .role = "prefill",
            .act = [&](const std::string&) { stuck.set_value(); },
            .rest = GrpcProxy::Verdict::kHold});
  auto running =
      std::async(std::launch::async, [&] { return Generate(cluster.stub(), EndlessRequest()); });
  ASSERT_EQ(stuck.get_future().wait_for(seconds(20)), std::future_status::ready);
  cluster.Signal("prefill-0", SIGTERM);
  EXPECT_EQ(cluster.WaitEnd("prefill-0", kBound), "exit 0");
  Answer answer = running.get();
  EXPECT_EQ(answer.status.error_code(), StatusCode::UNAVAILABLE) << answer.Explain();
  ExpectBeginning(std::move(answer));
  EXPECT_EQ(cluster.Quiesce(), "");
}
}  // namespace
}  // namespace setu::test
