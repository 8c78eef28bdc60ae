// SPDX-License-Identifier: Apache-2.0
// The promise of the project: the same request gives the same tokens, whatever else runs and
// however the work is cut.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "kernels/device.h"
#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/numeric_paths.h"
#include "tests/support/tiny_model.h"

namespace setu::test {
namespace {

// Prompts of 1 to 200 bytes, greedy and seeded, some with several choices.
std::vector<v1::GenerateRequest> Requests(int count) {
  std::mt19937 random(7);
  std::vector<v1::GenerateRequest> out;
  for (int i = 0; i < count; ++i) {
    std::vector<uint32_t> ids;
    const int length = 1 + static_cast<int>(random() % 200);
    for (int t = 0; t < length; ++t) ids.push_back(kTinyFirstByte + random() % 256);
    v1::GenerateRequest request = GreedyRequest(ids, 1 + random() % 40);
    if (i % 2 == 1) {
      request.mutable_sampling()->set_temperature(0.9f);
      request.mutable_sampling()->set_top_k(50);
      request.mutable_sampling()->set_top_p(0.95f);
      request.mutable_sampling()->set_seed(random());
      request.mutable_sampling()->set_repetition_penalty(1.1f);
    }
    if (i % 4 == 3) request.mutable_sampling()->set_n(3);
    request.mutable_output()->set_logprobs(2);
    out.push_back(request);
  }
  return out;
}

// At most `at_once` in flight, in order.
std::vector<Answer> Ask(Cluster& cluster, const std::vector<v1::GenerateRequest>& requests,
                        int at_once) {
  std::vector<Answer> answers(requests.size());
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < at_once; ++t) {
    threads.emplace_back([&] {
      for (size_t i; (i = next++) < requests.size();) {
        answers[i] = Generate(cluster.stub(), requests[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return answers;
}

void ExpectSame(std::vector<Answer>& expected, std::vector<Answer>& got) {
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(expected[i].ok()) << "reference " << i << ": " << expected[i].Explain();
    ASSERT_TRUE(got[i].ok()) << "request " << i << ": " << got[i].Explain();
    ASSERT_EQ(expected[i].choices.size(), got[i].choices.size());
    for (auto& [index, choice] : expected[i].choices) {
      const Choice& other = got[i].choices[index];
      EXPECT_EQ(choice.ids, other.ids) << "request " << i << " choice " << index;
      EXPECT_EQ(choice.text, other.text);
      ASSERT_EQ(choice.logprobs.size(), other.logprobs.size());
      for (size_t t = 0; t < choice.logprobs.size(); ++t) {
        EXPECT_EQ(choice.logprobs[t].SerializeAsString(), other.logprobs[t].SerializeAsString());
      }
    }
  }
}

class SameTokens : public ::testing::TestWithParam<PathAndKv> {
 protected:
  Cluster::Options Base() const {
    Cluster::Options options{.model = model_};
    options.prefill_runner.cpu = options.decode_runner.cpu =
        GetParam().On(options.decode_runner.cpu);
    return options;
  }
  std::vector<Answer> Reference() {
    Cluster alone(Base());
    EXPECT_TRUE(alone.WaitReady());
    return Ask(alone, requests_, 1);
  }
  // Returns how often a running sequence was pushed out meanwhile.
  uint64_t ExpectSameAs(const Cluster::Options& options, int at_once) {
    std::vector<Answer> reference = Reference();
    Cluster cluster(options);
    EXPECT_TRUE(cluster.WaitReady());
    std::vector<Answer> got = Ask(cluster, requests_, at_once);
    ExpectSame(reference, got);
    EXPECT_EQ(cluster.Quiesce(), "");
    return cluster.decode().snapshot().preemptions;
  }

  TempDir dir_;
  const std::string model_ = WriteTinyModel(dir_, {.weights = kernels::WeightType::kQ4_1});
  std::vector<v1::GenerateRequest> requests_ = Requests(24);
};

TEST_P(SameTokens, InABatchOfThree) { ExpectSameAs(Base(), 3); }
TEST_P(SameTokens, InABatchOfSixteen) { ExpectSameAs(Base(), 16); }

TEST_P(SameTokens, InChunksOfAnySize) {
  for (const int32_t chunk : {16, 64}) {
    Cluster::Options options = Base();
    options.prefill.loop.chunk_tokens = chunk;
    ExpectSameAs(options, 3);
  }
}

TEST_P(SameTokens, OnTwoThreads) {
  Cluster::Options options = Base();
  options.prefill_runner.cpu.threads = options.decode_runner.cpu.threads = 2;
  ExpectSameAs(options, 3);
}

TEST_P(SameTokens, OnEveryInstructionSetOfThisMachine) {
  for (const std::string& isa : kernels::AvailableIsas()) {
    Cluster::Options options = Base();
    options.decode_runner.cpu.isa = isa;  // prefill keeps the best: mixed within one path
    ExpectSameAs(options, 3);
    std::printf("checked %s\n", isa.c_str());
  }
}

// With one slot most pushes find it taken, and their frames carry their bytes.
TEST_P(SameTokens, ThroughSharedMemory) {
  std::vector<Answer> reference = Reference();
  for (const size_t slots : {1, 16}) {
    Cluster::Options options = Base();
    options.kv_shm_bytes = slots << 20;
    options.prefill.loop.chunk_tokens = 16;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.WaitReady());
    std::vector<Answer> got = Ask(cluster, requests_, 8);
    ExpectSame(reference, got);
    EXPECT_EQ(cluster.Quiesce(), "");
    const decode::Snapshot snapshot = cluster.decode().snapshot();
    EXPECT_GT(snapshot.kv_bytes_by_shm, 0u);
    if (slots == 16) {
      EXPECT_EQ(snapshot.kv_bytes_by_shm, snapshot.kv_bytes_received);
    }
  }
}

TEST_P(SameTokens, OnTwoWorkersOfEachKind) {
  Cluster::Options options = Base();
  options.prefill_workers = options.decode_workers = 2;
  ExpectSameAs(options, 8);
}

TEST_P(SameTokens, WhenDecodeComputesThePrompts) {
  for (const int32_t chunk : {16, 128}) {
    Cluster::Options options = Base();
    options.prefill_workers = 0;
    options.router.workers.local_prefill = true;
    options.decode.chunk_tokens = chunk;
    ExpectSameAs(options, 8);
  }
}

// Prompts that start alike, each asked twice: half of what is asked is found, in pools that are too
// small to keep it all.
TEST_P(SameTokens, WhenPrefixesAreFound) {
  for (size_t i = 0; i < requests_.size(); ++i) {
    auto& ids = *requests_[i].mutable_token_ids()->mutable_ids();
    for (int t = 0; t + 5 < ids.size(); ++t) ids[t] = kTinyFirstByte + (t + i % 3) % 256;
  }
  const std::vector<v1::GenerateRequest> once = requests_;
  requests_.insert(requests_.end(), once.begin(), once.end());
  Cluster::Options plain = Base();
  plain.prefill.loop.prefix_cache = plain.decode.prefix_cache = false;
  Cluster alone(plain);
  ASSERT_TRUE(alone.WaitReady());
  std::vector<Answer> reference = Ask(alone, requests_, 1);
  for (const int at_once : {1, 8}) {
    Cluster cluster(Base());
    ASSERT_TRUE(cluster.WaitReady());
    std::vector<Answer> got = Ask(cluster, requests_, at_once);
    ExpectSame(reference, got);
    uint32_t cached = 0;
    for (Answer& answer : got) {
      cached += answer.choices[0].finished.front().usage().cached_tokens();
    }
    EXPECT_GT(cached, 1000u);
    EXPECT_GT(cluster.decode().snapshot().prefix_tokens_known, 1000u);
    EXPECT_EQ(cluster.Quiesce(), "");
  }
}

// Long answers behind small grants, in a pool for a few of them: running sequences push each other
// out and resume.
class SameTokensInSmallPools : public SameTokens {
 protected:
  void SetUp() override {
    for (v1::GenerateRequest& request : requests_) {
      auto& ids = *request.mutable_token_ids()->mutable_ids();
      ids.Truncate(std::min(ids.size(), 30));
      request.mutable_sampling()->set_max_tokens(150);
      request.mutable_sampling()->set_n(1);
      request.mutable_stopping()->set_ignore_eos(true);
    }
  }
  Cluster::Options SmallGrants() const {
    Cluster::Options options = Base();
    options.decode.grant_output_tokens = 16;
    return options;
  }
  // Of the tiny model: K and V of 2 layers with 2 KV heads of 16 values.
  static int64_t BytesOf(int64_t blocks) {
    return blocks * 2 * 2 * 2 *
           static_cast<int64_t>(kernels::KvHeadBytes(GetParam().kv_type, 16, 16));
  }
};

TEST_P(SameTokensInSmallPools, WhenPreempted) {
  Cluster::Options options = SmallGrants();
  options.decode_runner.kv_memory_bytes = BytesOf(40);
  EXPECT_GT(ExpectSameAs(options, 12), 0u) << "the pool was too large to show anything";
}

// The one worker takes a few and runs out of blocks; in the other there is room for all.
TEST_P(SameTokensInSmallPools, WhenMovedToAWorkerWithRoom) {
  Cluster::Options options = SmallGrants();
  options.decode_workers = 2;
  options.decode_runner.kv_memory_bytes = BytesOf(320);
  options.kv_memory_bytes["decode-0"] = BytesOf(14);
  std::vector<Answer> reference = Reference();
  Cluster cluster(options);
  ASSERT_TRUE(cluster.WaitReady());
  std::vector<Answer> got = Ask(cluster, requests_, static_cast<int>(requests_.size()));
  ExpectSame(reference, got);
  EXPECT_EQ(cluster.Quiesce(), "");
  const router::ResumeCounts resumes = cluster.router().snapshot().resumes;
  EXPECT_GT(resumes.rebalanced, 0u) << "the pool was too large to show anything";
  EXPECT_EQ(resumes.drained + resumes.lost, 0u);
  EXPECT_EQ(cluster.decode(1).snapshot().preemptions, 0u);
}

INSTANTIATE_TEST_SUITE_P(Paths, SameTokens, ::testing::ValuesIn(kPathsAndKv), PathAndKvOf);
INSTANTIATE_TEST_SUITE_P(Paths, SameTokensInSmallPools, ::testing::ValuesIn(kPathsAndKv),
                         PathAndKvOf);

}  // namespace
}  // namespace setu::test
