// SPDX-License-Identifier: Apache-2.0
// Workers that stop without dying, as a swapping machine or a broken switch makes them, and come to
// after 12 s: longer than the router's patience with a silent stream and decode's with a transfer.
#include <gtest/gtest.h>
#include <signal.h>

#include <future>
#include <thread>

#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/fault_plan.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"

namespace setu::test {
namespace {

using Verdict = GrpcProxy::Verdict;

// The time itself is what is tested: the router's patience and decode's are 10 s each.
constexpr std::chrono::seconds kFreeze(12);

class Frozen : public ::testing::Test {
 protected:
  // The worker of that role freezes at the place, and thaws.
  void CostsNoToken(const std::string& role, FaultPlan::Place at, bool arrives, Verdict rest) {
    ASSERT_TRUE(cluster_.WaitReady());
    std::future<void> thawed;
    plan_.Arm({.at = std::move(at),
               .role = role,
               .act =
                   [&](const std::string& worker) {
                     cluster_.Signal(worker, SIGSTOP);
                     thawed = std::async(std::launch::async, [this, worker] {
                       std::this_thread::sleep_for(kFreeze);
                       cluster_.Signal(worker, SIGCONT);
                     });
                   },
               .arrives = arrives,
               .rest = rest});
    Answer answer = Generate(cluster_.stub(), LongRequest());
    EXPECT_TRUE(answer.ok()) << answer.Explain();
    EXPECT_EQ(answer.ids(), expected_);
    ASSERT_FALSE(plan_.Disarm().empty());
    thawed.wait();
    EXPECT_EQ(cluster_.Quiesce(), "");
  }
  double Router(const std::string& metric) const {
    return cluster_.Metric("router", metric).value_or(-1);
  }

  TempDir dir_;
  const std::string model_ = WriteTinyModel(dir_);
  const std::vector<uint32_t> expected_ = ReferenceIds({.model = model_}, LongRequest());
  FaultPlan plan_;
  ProcessCluster cluster_{{.model = model_,
                           .prefill_workers = 2,
                           .decode_workers = 2,
                           .prefill_flags = {"--chunk-tokens", "16"},
                           .watch = plan_.watch()}};
};

TEST_F(Frozen, ADecodeWorkerMidStreamGoesOnElsewhere) {
  CostsNoToken("decode", FaultPlan::Token(20), /*arrives=*/true, Verdict::kHold);
  EXPECT_EQ(Router("setu_resumes_total"), 1);
}

TEST_F(Frozen, ADecodeWorkerMidTransferCostsAPause) {
  CostsNoToken("decode", FaultPlan::MessageOf("PushKv", 2), /*arrives=*/true, Verdict::kPass);
}

TEST_F(Frozen, APrefillWorkerMidTransferGoesOnElsewhere) {
  CostsNoToken("prefill", FaultPlan::MessageOf("PushKv", 2), /*arrives=*/false, Verdict::kHold);
  EXPECT_EQ(Router("setu_prefill_retries_total"), 1);
}

TEST_F(Frozen, APrefillWorkerThatWasJustCalledCostsAPause) {
  CostsNoToken("prefill", FaultPlan::MessageOf("Prefill", 0), /*arrives=*/true, Verdict::kPass);
}

}  // namespace
}  // namespace setu::test
