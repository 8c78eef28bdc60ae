// SPDX-License-Identifier: Apache-2.0
#include "services/router/cluster_service.h"

#include <gmock/gmock.h>

#include "tests/services/router/router_fixture.h"

namespace setu::router {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

worker::v1::WatchLoadResponse With(worker::v1::WatchLoadResponse load, worker::v1::Limit limit) {
  load.mutable_roofline()->set_limit(limit);
  load.mutable_roofline()->set_bandwidth_share(0.5);
  load.mutable_roofline()->set_link_bytes_per_second(4e8);
  load.set_kv_bytes(7);
  load.set_prefix_tokens_asked(48);
  load.set_prefix_tokens_known(32);
  return load;
}

WorkerDirectory::Listing Listed(worker::v1::Role role, worker::v1::Limit limit) {
  auto worker = std::make_shared<Worker>();
  worker->address = "10.1.2.3:50052";
  worker->load = With({}, limit);
  return {role, WorkerState::kUsable, worker};
}

TEST(ShowWorkers, NumbersThemByRoleAndNamesNoAddress) {
  setu::v1::GetClusterResponse answer;
  ShowWorkers({Listed(worker::v1::ROLE_PREFILL, worker::v1::LIMIT_COMPUTE_BOUND),
               Listed(worker::v1::ROLE_DECODE, worker::v1::LIMIT_MEMORY_BOUND),
               {worker::v1::ROLE_DECODE, WorkerState::kUnreachable, nullptr}},
              0, answer);
  ASSERT_EQ(answer.workers_size(), 3);
  EXPECT_EQ(answer.workers(0).name(), "prefill-0");
  EXPECT_EQ(answer.workers(0).limit(), "compute-bound");
  EXPECT_EQ(answer.workers(1).name(), "decode-0");
  EXPECT_EQ(answer.workers(1).limit(), "memory-bound");
  EXPECT_EQ(answer.workers(2).name(), "decode-1");
  EXPECT_EQ(answer.workers(2).state(), "unreachable");
  EXPECT_EQ(answer.workers(2).limit(), "");
  EXPECT_THAT(answer.DebugString(), Not(HasSubstr("10.1.2.3")));
}

TEST(ShowWorkers, TellsWhoFailedAndWhoIsOnTrial) {
  WorkerDirectory::Listing worker = Listed(worker::v1::ROLE_DECODE, worker::v1::LIMIT_IDLE);
  const auto state = [&](Circuit::State circuit) {
    worker.circuit = circuit;
    setu::v1::GetClusterResponse answer;
    ShowWorkers({worker}, 0, answer);
    return answer.workers(0).state();
  };
  EXPECT_EQ(state(Circuit::State::kClosed), "usable");
  EXPECT_EQ(state(Circuit::State::kOpen), "failed");
  EXPECT_EQ(state(Circuit::State::kHalfOpen), "on trial");
  worker.state = WorkerState::kDraining;
  EXPECT_EQ(state(Circuit::State::kOpen), "draining");
}

// A prefill worker without work cannot know whether prompts wait: the router does.
TEST(ShowWorkers, CallsAnIdleWorkerStarvedWhilePromptsQueue) {
  for (const size_t queued : {0, 3}) {
    setu::v1::GetClusterResponse answer;
    ShowWorkers({Listed(worker::v1::ROLE_PREFILL, worker::v1::LIMIT_IDLE),
                 Listed(worker::v1::ROLE_DECODE, worker::v1::LIMIT_MEMORY_BOUND)},
                queued, answer);
    EXPECT_EQ(answer.workers(0).limit(), queued > 0 ? "starved" : "idle");
    EXPECT_EQ(answer.workers(1).limit(), "memory-bound");
  }
}

class ClusterServiceTest : public RouterFixture {
 protected:
  setu::v1::GetClusterResponse GetCluster() {
    const auto stub = setu::v1::ClusterService::NewStub(server_->InProcessChannel());
    grpc::ClientContext context;
    setu::v1::GetClusterResponse answer;
    const grpc::Status status = stub->GetCluster(&context, {}, &answer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return answer;
  }
};

TEST_F(ClusterServiceTest, TellsWhatTheWorkersReport) {
  decodes_[0]->Report(With(decodes_[0]->load(), worker::v1::LIMIT_MEMORY_BOUND));
  StartReady();
  const setu::v1::GetClusterResponse answer = GetCluster();
  EXPECT_EQ(answer.model(), "letters");
  ASSERT_EQ(answer.workers_size(), 2);
  EXPECT_EQ(answer.workers(0).name(), "prefill-0");
  EXPECT_EQ(answer.workers(0).limit(), "") << "it has measured nothing";
  EXPECT_EQ(answer.workers(1).name(), "decode-0");
  EXPECT_EQ(answer.workers(1).state(), "usable");
  EXPECT_EQ(answer.workers(1).limit(), "memory-bound");
  EXPECT_EQ(answer.workers(1).bandwidth_share(), 0.5);
  EXPECT_EQ(answer.workers(1).kv_bytes(), 7u);
  EXPECT_EQ(answer.workers(1).prefix_tokens_asked(), 48u);
  EXPECT_EQ(answer.workers(1).prefix_tokens_known(), 32u);
  EXPECT_EQ(answer.workers(1).link_bytes_per_second(), 4e8);
  EXPECT_EQ(answer.workers(1).blocks_total(), decodes_[0]->load().blocks_total());
}

TEST_F(ClusterServiceTest, TellsWhatTheRouterDecided) {
  StartReady();
  decodes_[0]->Plan({.lose_at = 3});
  prefills_[0]->Plan({.fail = test::PrefillPlan::Point::kBefore});
  ExpectWhole(Generate(Request(5)), 5);
  decodes_[0]->Plan({.refuse = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "never")});
  EXPECT_FALSE(Generate(Request(5)).status.ok());
  EXPECT_FALSE(Generate(Request(0)).status.ok());
  const setu::v1::Decisions decisions = GetCluster().decisions();
  EXPECT_EQ(decisions.finished(), 1u);
  EXPECT_EQ(decisions.failed(), 1u);
  EXPECT_EQ(decisions.cancelled(), 0u);
  EXPECT_EQ(decisions.refused(), 1u);
  EXPECT_EQ(decisions.resumes(), 1u);
  EXPECT_EQ(decisions.retries(), 1u);
  EXPECT_EQ(decisions.local_prefills(), 0u);
}

}  // namespace
}  // namespace setu::router
