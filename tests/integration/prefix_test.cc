// SPDX-License-Identifier: Apache-2.0
// Prompts that start alike go where their start is known, on two workers of each kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/tiny_model.h"
#include "tests/support/wait_until.h"

namespace setu::test {
namespace {

constexpr int kPrefixes = 8;
constexpr int kPrefixTokens = 128;
constexpr int kRequests = 200;

// A prefix of 128 ids and a tail of its own.
v1::GenerateRequest Request(int prefix, int number) {
  std::mt19937 random(prefix);
  std::vector<uint32_t> ids;
  for (int i = 0; i < kPrefixTokens; ++i) ids.push_back(kTinyFirstByte + random() % 256);
  random.seed(1000 + number);
  for (int i = 0; i < 1 + number % 15; ++i) ids.push_back(kTinyFirstByte + random() % 256);
  return GreedyRequest(ids, 4);
}

class PrefixTest : public ::testing::Test {
 protected:
  Cluster::Options TwoOfEach() const {
    Cluster::Options options{.model = model_, .prefill_workers = 2, .decode_workers = 2};
    options.prefill_runner.kv_memory_bytes = options.decode_runner.kv_memory_bytes = 4 << 20;
    return options;
  }
  TempDir dir_;
  const std::string model_ = WriteTinyModel(dir_);
};

TEST_F(PrefixTest, NearlyAllThatCanBeReusedIs) {
  Cluster cluster(TwoOfEach());
  ASSERT_TRUE(cluster.WaitReady());
  const size_t before = cluster.router().snapshot().prefix_blocks;
  for (int prefix = 0; prefix < kPrefixes; ++prefix) {
    ASSERT_TRUE(Generate(cluster.stub(), Request(prefix, 0)).ok());
  }
  // Once the router knows, each further request finds its whole prefix.
  const size_t blocks = kPrefixes * kPrefixTokens / 16;
  ASSERT_TRUE(WaitUntil(std::chrono::seconds(10), [&] {
    return cluster.router().snapshot().prefix_blocks >= before + blocks;
  }));
  std::atomic<int> next = 0;
  std::atomic<uint64_t> cached = 0;
  std::vector<std::thread> clients;
  for (int t = 0; t < 4; ++t) {
    clients.emplace_back([&] {
      for (int i; (i = next++) < kRequests;) {
        Answer answer = Generate(cluster.stub(), Request(i % kPrefixes, 1 + i));
        EXPECT_TRUE(answer.ok()) << answer.Explain();
        cached += answer.choices[0].finished.front().usage().cached_tokens();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  const double reusable = double{kRequests} * kPrefixTokens;
  EXPECT_GE(cached / reusable, 0.95);
  EXPECT_EQ(cluster.Quiesce(), "");
}

TEST_F(PrefixTest, AWorkerThatStartsAnewIsKnownToKnowNothing) {
  Cluster cluster(TwoOfEach());
  ASSERT_TRUE(cluster.WaitReady());
  for (int prefix = 0; prefix < kPrefixes; ++prefix) {
    ASSERT_TRUE(Generate(cluster.stub(), Request(prefix, 0)).ok());
  }
  for (const char* worker : {"prefill-0", "prefill-1", "decode-0", "decode-1"}) {
    cluster.Kill(worker);
  }
  ASSERT_TRUE(WaitUntil(std::chrono::seconds(10),
                        [&] { return cluster.router().snapshot().prefix_blocks == 0; }));
  for (const char* worker : {"prefill-0", "prefill-1", "decode-0", "decode-1"}) {
    cluster.Start(worker);
  }
  ASSERT_TRUE(cluster.WaitReady());
  Answer answer = Generate(cluster.stub(), Request(0, 1));
  ASSERT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.choices[0].finished.front().usage().cached_tokens(), 0u);
}

}  // namespace
}  // namespace setu::test
