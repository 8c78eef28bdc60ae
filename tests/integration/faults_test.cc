// SPDX-License-Identifier: Apache-2.0
// Workers die, drain and come back: the client sees a pause, not a token less or more.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/tiny_model.h"

namespace setu::test {
namespace {

class Faults : public ::testing::Test {
 protected:
  Cluster::Options TwoOfEach() const {
    return {.model = model_, .prefill_workers = 2, .decode_workers = 2};
  }
  // The decode worker that runs something now.
  static std::string BusyDecode(Cluster& cluster) {
    for (int i = 0; i < 2; ++i) {
      if (cluster.decode(i).snapshot().running > 0) return absl::StrCat("decode-", i);
    }
    return "";
  }

  TempDir dir_;
  const std::string model_ = WriteTinyModel(dir_);
};

// The answer is far longer than what may be between decode worker and client, the 256 tokens that
// it may be ahead and what waits to be read: the kill finds the worker at work.
TEST_F(Faults, ADecodeWorkerThatDiesAtAnyTokenCostsNoToken) {
  const std::string model = WriteTinyModel(dir_, {.context = 2048}, "long.gguf");
  const Cluster::Options options = {.model = model, .prefill_workers = 2, .decode_workers = 2};
  v1::GenerateRequest request = LongRequest();
  request.mutable_sampling()->set_max_tokens(1200);
  const std::vector<uint32_t> expected = ReferenceIds(options, request);
  for (uint32_t at = 1; at < 130; at += 8) {
    Cluster cluster(options);
    ASSERT_TRUE(cluster.WaitReady());
    std::string killed;
    Answer answer = Generate(cluster.stub(), request, ActAfter(at, [&] {
                               killed = BusyDecode(cluster);
                               if (!killed.empty()) cluster.Kill(killed);
                               return !killed.empty();
                             }));
    EXPECT_TRUE(answer.ok()) << answer.Explain();
    EXPECT_EQ(answer.ids(), expected) << "killed " << killed << " at " << at;
    EXPECT_GE(cluster.router().snapshot().resumes.total(), 1u) << "killed too late, at " << at;
    EXPECT_EQ(cluster.Quiesce(), "");
  }
}

TEST_F(Faults, WithoutAWorkerLeftTheAnswerIsUnavailableAndSaysHowFarItCame) {
  Cluster::Options options{.model = model_};
  options.router.queue.resume_timeout = std::chrono::milliseconds(300);
  Cluster cluster(options);
  ASSERT_TRUE(cluster.WaitReady());
  Answer answer = Generate(cluster.stub(), LongRequest(), ActAfter(1, [&] {
                             cluster.Kill("decode-0");
                             return true;
                           }));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE) << answer.Explain();
  EXPECT_EQ(answer.LastIndex(), absl::StrCat(answer.ids().size() - 1));
  EXPECT_EQ(cluster.Quiesce(), "");
}

TEST_F(Faults, AWorkerThatComesBackIsUsedAgain) {
  Cluster cluster({.model = model_});
  ASSERT_TRUE(cluster.WaitReady());
  cluster.Kill("decode-0");
  cluster.Kill("prefill-0");
  EXPECT_EQ(Generate(cluster.stub(), GreedyText("Hi", 4), {.deadline = std::chrono::seconds(2)})
                .status.ok(),
            false);
  cluster.Start("decode-0");
  cluster.Start("prefill-0");
  ASSERT_TRUE(cluster.WaitReady(std::chrono::seconds(5)));
  Answer answer = Generate(cluster.stub(), GreedyText("Hi", 4));
  EXPECT_TRUE(answer.ok()) << answer.Explain();
}

TEST_F(Faults, ADrainingDecodeWorkerHandsItsSequencesOver) {
  const std::vector<uint32_t> expected = ReferenceIds(TwoOfEach(), LongRequest());
  Cluster cluster(TwoOfEach());
  ASSERT_TRUE(cluster.WaitReady());
  std::string drained;
  Answer answer = Generate(cluster.stub(), LongRequest(), ActAfter(1, [&] {
                             drained = BusyDecode(cluster);
                             if (drained.empty()) return false;
                             cluster.decode(drained.back() - '0').BeginDrain();
                             return true;
                           }));
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.ids(), expected);
  ASSERT_FALSE(drained.empty());
  EXPECT_TRUE(cluster.decode(drained.back() - '0').WaitDrained(std::chrono::seconds(5)));
  EXPECT_EQ(cluster.Quiesce(), "");
}

// Prefill workers that die over and over are tested with processes (tests/fault): a call on an
// in-process channel whose server has just stopped crashes inside gRPC 1.51.

}  // namespace
}  // namespace setu::test
