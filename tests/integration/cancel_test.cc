// SPDX-License-Identifier: Apache-2.0
// A client that goes away, or whose deadline passes, at any stage: the work stops and everything
// it held is free again.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/tiny_model.h"

namespace setu::test {
namespace {

v1::GenerateRequest Endless() {
  v1::GenerateRequest request = GreedyText(std::string(200, 'x'), 200);
  request.mutable_stopping()->set_ignore_eos(true);
  return request;
}

class Cancel : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(cluster_.WaitReady()); }
  void ExpectUnharmed() {
    EXPECT_EQ(cluster_.Quiesce(), "");
    Answer next = Generate(cluster_.stub(), GreedyText("next", 5));
    EXPECT_TRUE(next.ok()) << next.Explain();
  }

  TempDir dir_;
  Cluster cluster_{{.model = WriteTinyModel(dir_)}};
};

TEST_F(Cancel, WhileTokensComeStopsTheWork) {
  int deltas = 0;
  Answer answer = Generate(cluster_.stub(), Endless(),
                           {.keep_going = [&](const v1::GenerateResponse& response) {
                             deltas += response.has_delta();
                             return deltas < 3;
                           }});
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::CANCELLED);
  ExpectUnharmed();
}

TEST_F(Cancel, BeforeTheFirstTokenStopsTheWork) {
  Answer answer = Generate(cluster_.stub(), Endless(),
                           {.keep_going = [](const v1::GenerateResponse&) { return false; }});
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::CANCELLED);
  ExpectUnharmed();
}

TEST_F(Cancel, ADeadlineThatPassesStopsTheWork) {
  for (const int ms : {1, 3, 10, 30}) {
    Answer answer =
        Generate(cluster_.stub(), Endless(), {.deadline = std::chrono::milliseconds(ms)});
    EXPECT_NE(answer.status.error_code(), grpc::StatusCode::INTERNAL) << answer.Explain();
  }
  ExpectUnharmed();
}

// Three hundred at once, each cancelled at a random moment: in queue, prefill, transfer or decode.
TEST_F(Cancel, ManyAtRandomMomentsLeaveNothingBehind) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 20; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 15; ++i) {
        const auto deadline = std::chrono::microseconds(200 + random() % 60'000);
        Generate(cluster_.stub(), Endless(),
                 {.deadline = std::chrono::duration_cast<std::chrono::milliseconds>(deadline)});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectUnharmed();
  const router::RouterSnapshot s = cluster_.router().snapshot();
  EXPECT_EQ(s.admitted, s.finished + s.failed + s.cancelled + s.running);
}

}  // namespace
}  // namespace setu::test
