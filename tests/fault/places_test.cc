// SPDX-License-Identifier: Apache-2.0
// kill -9 of a worker at each place of a request's way: before each message between router, prefill
// and decode worker, and after each token. The client sees a pause, not a token less or more, and
// no survivor holds anything afterwards.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/fault_plan.h"
#include "tests/support/held_memory.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"
#include "tests/support/wait_until.h"

namespace setu::test {
namespace {

constexpr uint32_t kTokens = 40;

class Places : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(cluster_.WaitReady()); }

  FaultPlan::Fault Kill(const std::string& role, FaultPlan::Place at) {
    return {.at = std::move(at), .role = role, .act = [this](const std::string& worker) {
              cluster_.Kill(worker);
            }};
  }
  // Whether the place was reached. The worker is back afterwards.
  bool CostsNoToken(FaultPlan::Fault fault) {
    plan_.Arm(std::move(fault));
    Answer answer = Generate(cluster_.stub(), request_);
    const std::string killed = plan_.Disarm();
    EXPECT_TRUE(answer.ok()) << "killed " << killed << ": " << answer.Explain();
    EXPECT_EQ(answer.ids(), expected_) << "killed " << killed;
    EXPECT_EQ(cluster_.Quiesce(), "") << "killed " << killed;
    if (killed.empty()) return false;
    EXPECT_TRUE(cluster_.StartAgain(killed)) << killed;
    EXPECT_TRUE(WaitUntil(std::chrono::seconds(5), [&] { return Memories() == 0; }))
        << "a decode worker holds memory of a sender, killed " << killed;
    return true;
  }
  size_t Memories() const {
    return HeldMemories(cluster_.pid("decode-0")) + HeldMemories(cluster_.pid("decode-1"));
  }
  // At each message of that kind that the request has; at how many.
  int AtEach(const std::string& role, FaultPlan::Place (*place)(const std::string&, int),
             const std::string& method) {
    for (int index = 0;; ++index) {
      SCOPED_TRACE(absl::StrCat(role, " at ", method, " ", index));
      if (!CostsNoToken(Kill(role, place(method, index)))) return index;
    }
  }
  static v1::GenerateRequest Request() {
    v1::GenerateRequest request = GreedyText(std::string(90, 'a'), kTokens);
    request.mutable_stopping()->set_ignore_eos(true);
    return request;
  }

  TempDir dir_;
  const std::string model_ = WriteTinyModel(dir_);
  v1::GenerateRequest request_ = Request();
  std::vector<uint32_t> expected_ = ReferenceIds({.model = model_}, request_);
  FaultPlan plan_;
  ProcessCluster cluster_{{.model = model_,
                           .prefill_workers = 2,
                           .decode_workers = 2,
                           .prefill_flags = {"--chunk-tokens", "16"},
                           .watch = plan_.watch()}};
};

TEST_F(Places, APrefillWorkerMayDieBeforeEachMessageOfItsPush) {
  // Manifest, a frame of each layer at least, commit.
  EXPECT_GE(AtEach("prefill", FaultPlan::MessageOf, "PushKv"), 4);
  EXPECT_TRUE(CostsNoToken(Kill("prefill", FaultPlan::Commit())));
}

TEST_F(Places, APrefillWorkerMayDieWhenCalledOrAtItsFirstToken) {
  EXPECT_TRUE(CostsNoToken(Kill("prefill", FaultPlan::MessageOf("Prefill", 0))));
  EXPECT_TRUE(CostsNoToken(Kill("prefill", FaultPlan::AnswerOf("Prefill", 0))));
}

TEST_F(Places, APrefillWorkerMayDieBetweenCommitAndItsAnswer) {
  FaultPlan::Fault fault = Kill("prefill", FaultPlan::Committed());
  fault.arrives = true;
  fault.rest = GrpcProxy::Verdict::kPass;
  fault.lost = {FaultPlan::Pushed()};
  EXPECT_TRUE(CostsNoToken(fault));
  // Nor has the router heard of the first token from it.
  fault.lost.push_back(FaultPlan::AnswerOf("Prefill", 0));
  EXPECT_TRUE(CostsNoToken(fault));
}

TEST_F(Places, ADecodeWorkerMayDieAfterEachToken) {
  for (uint32_t index = 0; index < kTokens; ++index) {
    SCOPED_TRACE(absl::StrCat("token ", index));
    FaultPlan::Fault fault = Kill("decode", FaultPlan::Token(static_cast<int32_t>(index)));
    fault.arrives = true;
    EXPECT_TRUE(CostsNoToken(fault));
  }
}

TEST_F(Places, ADecodeWorkerMayDieBeforeEachMessageOfATransfer) {
  EXPECT_GE(AtEach("decode", FaultPlan::MessageOf, "PushKv"), 4);
}

TEST_F(Places, ADecodeWorkerMayDieBeforeItGrantsOrCommits) {
  EXPECT_TRUE(CostsNoToken(Kill("decode", FaultPlan::MessageOf("Decode", 0))));
  EXPECT_TRUE(CostsNoToken(Kill("decode", FaultPlan::AnswerOf("Decode", 0))));
  EXPECT_TRUE(CostsNoToken(Kill("decode", FaultPlan::Committed())));
}

// A model and a prompt that take a hundred chunks of milliseconds: the first frame leaves with
// nearly all of them to come.
TEST(MidPrompt, APrefillWorkerMayDieBetweenTwoChunks) {
  TempDir dir;
  const std::string model =
      WriteTinyModel(dir, {.layers = 4, .hidden = 256, .ffn_hidden = 512, .context = 2048});
  const v1::GenerateRequest request =
      GreedyRequest(std::vector<uint32_t>(1600, kTinyFirstByte + 'm'), 20);
  const std::vector<uint32_t> expected = ReferenceIds({.model = model}, request);
  FaultPlan plan;
  ProcessCluster cluster({.model = model,
                          .prefill_workers = 2,
                          .prefill_flags = {"--chunk-tokens", "16"},
                          .watch = plan.watch()});
  ASSERT_TRUE(cluster.WaitReady());
  bool sampled = false;
  FaultPlan::Place first_frame = FaultPlan::MessageOf("PushKv", 1);
  plan.Arm({.at =
                [&](const GrpcProxy::Message& message) {
                  sampled = sampled || FaultPlan::AnswerOf("Prefill", 0)(message);
                  return first_frame(message);
                },
            .role = "prefill",
            .act = [&](const std::string& worker) { cluster.Kill(worker); },
            .arrives = true});
  Answer answer = Generate(cluster.stub(), request);
  const std::string killed = plan.Disarm();
  EXPECT_FALSE(killed.empty());
  EXPECT_FALSE(sampled) << "the prompt was through";
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.ids(), expected);
  EXPECT_EQ(cluster.Metric("router", "setu_prefill_retries_total"), 1);
  EXPECT_EQ(cluster.Quiesce(), "");
}

}  // namespace
}  // namespace setu::test
