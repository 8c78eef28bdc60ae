// SPDX-License-Identifier: Apache-2.0
// More than fits: every request ends OK or is told at once when to come back.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/tiny_model.h"

namespace setu::test {
namespace {

TEST(Load, TwoHundredStreamsWithRoomForSixteen) {
  TempDir dir;
  Cluster::Options options{.model = WriteTinyModel(dir)};
  options.decode.max_running = 16;
  options.router.queue.capacity = 64;
  Cluster cluster(options);
  ASSERT_TRUE(cluster.WaitReady());

  v1::GenerateRequest request = GreedyText(std::string(60, 'q'), 40);
  request.mutable_stopping()->set_ignore_eos(true);
  Answer reference = Generate(cluster.stub(), request);
  ASSERT_TRUE(reference.ok()) << reference.Explain();

  std::atomic<int> ok = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 200; ++i) {
    threads.emplace_back([&] {
      Answer answer = Generate(cluster.stub(), request);
      if (answer.status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
        ++refused;
        EXPECT_EQ(answer.trailers.count("grpc-retry-pushback-ms"), 1u);
        EXPECT_TRUE(answer.choices.empty()) << "refused after work was done";
        return;
      }
      EXPECT_TRUE(answer.ok()) << answer.Explain();
      EXPECT_EQ(answer.ids(), reference.ids());
      ++ok;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ok + refused, 200);
  EXPECT_GE(ok, 64);  // what the queue holds is served
  EXPECT_EQ(cluster.Quiesce(), "");
  const decode::Snapshot decode = cluster.decode().snapshot();
  EXPECT_EQ(decode.admitted, decode.finished + decode.failed + decode.cancelled);
}

}  // namespace
}  // namespace setu::test
