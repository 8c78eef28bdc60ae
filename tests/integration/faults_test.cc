// SPDX-License-Identifier: Apache-2.0
// Workers die, drain and come back: the client sees a pause, not a token less or more.
#include <gtest/gtest.h>

#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/tiny_model.h"

namespace setu::test {
namespace {

// More than a decode worker may be ahead of its reader (256), so that a fault always finds work.
constexpr uint32_t kTokens = 400;

v1::GenerateRequest LongRequest() {
  v1::GenerateRequest request = GreedyText(std::string(90, 'a'), kTokens);
  request.mutable_stopping()->set_ignore_eos(true);
  return request;
}

class Faults : public ::testing::Test {
 protected:
  Cluster::Options TwoOfEach() const {
    return {.model = model_, .prefill_workers = 2, .decode_workers = 2};
  }
  std::vector<uint32_t> Reference(const v1::GenerateRequest& request) {
    Cluster alone({.model = model_});
    EXPECT_TRUE(alone.WaitReady());
    Answer answer = Generate(alone.stub(), request);
    EXPECT_TRUE(answer.ok()) << answer.Explain();
    return answer.ids();
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

TEST_F(Faults, ADecodeWorkerThatDiesAtAnyTokenCostsNoToken) {
  const std::vector<uint32_t> expected = Reference(LongRequest());
  ASSERT_EQ(expected.size(), kTokens);
  for (uint32_t at = 1; at < 130; at += 8) {
    Cluster cluster(TwoOfEach());
    ASSERT_TRUE(cluster.WaitReady());
    std::string killed;
    Answer answer = Generate(
        cluster.stub(), LongRequest(), {.keep_going = [&](const v1::GenerateResponse& response) {
          const bool reached = response.has_delta() && response.delta().first_token() + 1 >= at;
          if (reached && killed.empty()) {
            killed = BusyDecode(cluster);
            if (!killed.empty()) cluster.Kill(killed);
          }
          return true;
        }});
    EXPECT_TRUE(answer.ok()) << answer.Explain();
    EXPECT_EQ(answer.ids(), expected) << "killed " << killed << " at " << at;
    EXPECT_GE(cluster.router().snapshot().resumes, 1u) << "killed too late, at " << at;
    EXPECT_EQ(cluster.Quiesce(), "");
  }
}

TEST_F(Faults, WithoutAWorkerLeftTheAnswerIsUnavailableAndSaysHowFarItCame) {
  Cluster::Options options{.model = model_};
  options.router.queue.resume_timeout = std::chrono::milliseconds(300);
  Cluster cluster(options);
  ASSERT_TRUE(cluster.WaitReady());
  bool killed = false;
  Answer answer = Generate(cluster.stub(), LongRequest(),
                           {.keep_going = [&](const v1::GenerateResponse& response) {
                             if (response.has_delta() && !killed) {
                               killed = true;
                               cluster.Kill("decode-0");
                             }
                             return true;
                           }});
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE) << answer.Explain();
  const auto last = answer.trailers.find("last-index");
  ASSERT_NE(last, answer.trailers.end());
  EXPECT_EQ(last->second, std::to_string(static_cast<int>(answer.ids().size()) - 1));
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
  const std::vector<uint32_t> expected = Reference(LongRequest());
  Cluster cluster(TwoOfEach());
  ASSERT_TRUE(cluster.WaitReady());
  std::string drained;
  Answer answer = Generate(cluster.stub(), LongRequest(),
                           {.keep_going = [&](const v1::GenerateResponse& response) {
                             if (response.has_delta() && drained.empty()) {
                               drained = BusyDecode(cluster);
                               if (!drained.empty()) {
                                 cluster.decode(drained.back() - '0').BeginDrain();
                               }
                             }
                             return true;
                           }});
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
