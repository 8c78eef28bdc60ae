// SPDX-License-Identifier: Apache-2.0
// Two tenants of a whole cluster: neither finds what the other has cached, and one that asks for
// twenty times what the other does is refused before it.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/router/callers.h"
#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/tiny_model.h"
#include "tests/support/wait_until.h"

namespace setu::test {
namespace {

CallOptions As(const std::string& token) {
  return {.headers = {{"authorization", "Bearer " + token}}};
}

class TenantsTest : public ::testing::Test {
 protected:
  // Tenants many and few, whose tokens are m and f.
  void SetUp() override {
    const auto entry = [](const std::string& token, const std::string& tenant) {
      return absl::StrCat(rpc::HexOf(rpc::DigestOf(token)), ": ", tenant, "\n");
    };
    const std::string file =
        dir_.Write("tokens", "many: []\nfew: []\n" + entry("m", "many") + entry("f", "few"));
    auto callers = router::Callers::FromFile(file, std::string(32, 's'), logger_);
    ASSERT_TRUE(callers.ok()) << callers.status();
    callers_ = *std::move(callers);
    options_.model = WriteTinyModel(dir_);
    options_.router.callers = callers_.get();
    request_ = GreedyText(std::string(60, 'q'), 40);
    request_.mutable_stopping()->set_ignore_eos(true);
  }

  TempDir dir_;
  NullLogger logger_;
  std::unique_ptr<router::Callers> callers_;
  Cluster::Options options_;
  v1::GenerateRequest request_;
};

TEST_F(TenantsTest, NeitherFindsWhatTheOtherHasCached) {
  Cluster cluster(options_);
  ASSERT_TRUE(cluster.WaitReady());
  const auto cached = [&](const std::string& token) {
    const Answer answer = Generate(cluster.stub(), request_, As(token));
    EXPECT_TRUE(answer.ok()) << answer.Explain();
    return answer.choices.at(0).finished.front().usage().cached_tokens();
  };
  EXPECT_EQ(cached("m"), 0u);
  EXPECT_TRUE(WaitUntil(std::chrono::seconds(10), [&] { return cached("m") > 0; }));
  EXPECT_EQ(cached("f"), 0u) << "the same prompt, of another tenant";
  EXPECT_TRUE(WaitUntil(std::chrono::seconds(10), [&] { return cached("f") > 0; }));
  EXPECT_EQ(cluster.Quiesce(), "");
}

TEST_F(TenantsTest, AFloodIsRefusedAndTheOtherNever) {
  options_.decode.max_running = 2;
  options_.router.queue.capacity = 8;
  Cluster cluster(options_);
  ASSERT_TRUE(cluster.WaitReady());
  Answer reference = Generate(cluster.stub(), request_, As("f"));
  ASSERT_TRUE(reference.ok()) << reference.Explain();

  std::atomic<bool> over = false;
  std::atomic<int> served = 0, refused = 0;
  std::vector<std::thread> flood;
  for (int i = 0; i < 20; ++i) {
    flood.emplace_back([&] {
      while (!over) {
        Answer answer = Generate(cluster.stub(), request_, As("m"));
        if (answer.ok()) {
          EXPECT_EQ(answer.ids(), reference.ids());
          ++served;
          continue;
        }
        EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
            << answer.Explain();
        EXPECT_EQ(answer.trailers.count("grpc-retry-pushback-ms"), 1u);
        ++refused;
      }
    });
  }
  while (refused == 0) std::this_thread::yield();  // the queue is full of them
  for (int i = 0; i < 10; ++i) {
    Answer answer = Generate(cluster.stub(), request_, As("f"));
    EXPECT_TRUE(answer.ok()) << answer.Explain();
    EXPECT_EQ(answer.ids(), reference.ids());
  }
  over = true;
  for (std::thread& thread : flood) thread.join();
  EXPECT_GT(served, 0);
  EXPECT_EQ(cluster.Quiesce(), "");
}

}  // namespace
}  // namespace setu::test
