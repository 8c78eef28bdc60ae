// SPDX-License-Identifier: Apache-2.0
// Router, prefill and decode as processes on loopback: kill -9 and SIGTERM at any moment cost the
// client a pause, not a token, and the tokens are those of the cluster in one process.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/process_cluster.h"
#include "tests/support/real_model.h"
#include "tests/support/tiny_model.h"

namespace setu::test {
namespace {

class Processes : public ::testing::Test {
 protected:
  std::vector<uint32_t> Reference(const v1::GenerateRequest& request) const {
    return ReferenceIds({.model = model_}, request);
  }
  ProcessCluster::Options TwoOfEach() const {
    return {.model = model_, .prefill_workers = 2, .decode_workers = 2};
  }
  // Work for so long that whoever has seen a few tokens of it, however late, finds it going on.
  static v1::GenerateRequest EndlessRequest() {
    v1::GenerateRequest request = LongRequest();
    request.mutable_sampling()->set_max_tokens(3000);
    return request;
  }
  static std::string BusyDecode(const ProcessCluster& cluster) {
    for (const char* name : {"decode-0", "decode-1"}) {
      if (cluster.Metric(name, "setu_num_requests_running").value_or(0) > 0) return name;
    }
    return "";
  }

  TempDir dir_;
  const std::string model_ = WriteTinyModel(dir_, {.context = 4096});
};

TEST_F(Processes, GiveTheTokensOfOneProcess) {
  const std::vector<uint32_t> expected = Reference(LongRequest());
  ProcessCluster cluster({.model = model_});
  ASSERT_TRUE(cluster.WaitReady());
  Answer answer = Generate(cluster.stub(), LongRequest());
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.ids(), expected);
}

TEST_F(Processes, DecodeWorkersThatMayPrefillNeedNoPrefillWorker) {
  const std::vector<uint32_t> expected = Reference(LongRequest());
  ProcessCluster cluster(
      {.model = model_, .prefill_workers = 0, .router_flags = {"--local-prefill"}});
  ASSERT_TRUE(cluster.WaitReady());
  Answer answer = Generate(cluster.stub(), LongRequest());
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.ids(), expected);
}

TEST_F(Processes, OnOneHostKvGoesThroughSharedMemoryUnlessToldOtherwise) {
  const std::vector<uint32_t> expected = Reference(LongRequest());
  for (const bool shm : {true, false}) {
    const std::vector<std::string> otherwise = {"--kv-shm=0"};
    ProcessCluster cluster(
        {.model = model_, .prefill_flags = shm ? std::vector<std::string>{} : otherwise});
    ASSERT_TRUE(cluster.WaitReady());
    Answer answer = Generate(cluster.stub(), LongRequest());
    EXPECT_TRUE(answer.ok()) << answer.Explain();
    EXPECT_EQ(answer.ids(), expected);
    EXPECT_EQ(cluster.Quiesce(), "");
    for (const char* worker : {"prefill-0", "decode-0"}) {
      const auto bytes = [&](const char* label) {
        return cluster.Metric(worker, "setu_kv_transfer_bytes_total", label);
      };
      EXPECT_GT(bytes(shm ? "transport=\"shm\"" : "transport=\"grpc\""), 0);
      EXPECT_EQ(bytes(shm ? "transport=\"grpc\"" : "transport=\"shm\""), 0);
    }
  }
}

TEST_F(Processes, ADecodeWorkerKilledMidStreamCostsNoToken) {
  const std::vector<uint32_t> expected = Reference(EndlessRequest());
  ProcessCluster cluster(TwoOfEach());
  ASSERT_TRUE(cluster.WaitReady());
  for (uint32_t at = 1; at < 120; at += 20) {
    std::string killed;
    Answer answer = Generate(cluster.stub(), EndlessRequest(), ActAfter(at, [&] {
                               killed = BusyDecode(cluster);
                               if (!killed.empty()) cluster.Kill(killed);
                               return !killed.empty();
                             }));
    EXPECT_TRUE(answer.ok()) << answer.Explain();
    EXPECT_EQ(answer.ids(), expected) << "killed " << killed << " at " << at;
    ASSERT_FALSE(killed.empty());
    cluster.Start(killed);
  }
}

TEST_F(Processes, APrefillWorkerKilledAtAnyStageCostsNoToken) {
  const std::vector<uint32_t> expected = Reference(LongRequest());
  ProcessCluster cluster(TwoOfEach());
  ASSERT_TRUE(cluster.WaitReady());
  std::atomic<bool> done = false;
  std::thread reaper([&] {
    for (int i = 0; !done; ++i) {
      // One at a time, and the next only when this one takes work again.
      const std::string name = absl::StrCat("prefill-", i % 2);
      cluster.Kill(name);
      EXPECT_TRUE(cluster.StartAgain(name)) << name;
    }
  });
  for (int i = 0; i < 20; ++i) {
    Answer answer = Generate(cluster.stub(), LongRequest());
    EXPECT_TRUE(answer.ok()) << answer.Explain();
    EXPECT_EQ(answer.ids(), expected);
  }
  done = true;
  reaper.join();
}

TEST_F(Processes, ADecodeWorkerToldToStopHandsOverAndExitsZero) {
  const std::vector<uint32_t> expected = Reference(EndlessRequest());
  ProcessCluster cluster(TwoOfEach());
  ASSERT_TRUE(cluster.WaitReady());
  std::string stopped;
  Answer answer = Generate(cluster.stub(), EndlessRequest(), ActAfter(1, [&] {
                             stopped = BusyDecode(cluster);
                             if (!stopped.empty()) cluster.Signal(stopped, SIGTERM);
                             return !stopped.empty();
                           }));
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.ids(), expected);
  ASSERT_FALSE(stopped.empty());
  EXPECT_EQ(cluster.WaitEnd(stopped, std::chrono::seconds(10)), "exit 0");
}

TEST_F(Processes, EachExitsZeroWhenToldToStop) {
  ProcessCluster cluster({.model = model_});
  ASSERT_TRUE(cluster.WaitReady());
  for (const char* name : {"router", "prefill-0", "decode-0"}) {
    cluster.Signal(name, SIGTERM);
    EXPECT_EQ(cluster.WaitEnd(name, std::chrono::seconds(10)), "exit 0") << name;
  }
}

// However long it might have waited to resume.
TEST_F(Processes, WithoutADecodeWorkerLeftAnAnswerEndsUnavailableAndSaysHowFarItCame) {
  ProcessCluster cluster({.model = model_});
  ASSERT_TRUE(cluster.WaitReady());
  CallOptions options = ActAfter(1, [&] {
    cluster.Kill("decode-0");
    return true;
  });
  options.deadline = std::chrono::seconds(4);
  Answer answer = Generate(cluster.stub(), EndlessRequest(), options);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE) << answer.Explain();
  EXPECT_TRUE(answer.broken.empty()) << answer.Explain();
  EXPECT_EQ(answer.LastIndex(), absl::StrCat(answer.ids().size() - 1));
  EXPECT_EQ(cluster.Quiesce(), "");
}

TEST_F(Processes, WithoutAPrefillWorkerLeftARequestEndsUnavailable) {
  ProcessCluster cluster({.model = model_, .router_flags = {"--resume-timeout", "500ms"}});
  ASSERT_TRUE(cluster.WaitReady());
  cluster.Kill("prefill-0");
  // The first finds out, the others are told.
  for (int i = 0; i < 5; ++i) {
    Answer answer = Generate(cluster.stub(), LongRequest());
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE) << answer.Explain();
    EXPECT_TRUE(answer.broken.empty()) << answer.Explain();
    EXPECT_TRUE(answer.ids().empty());
  }
  EXPECT_EQ(cluster.Quiesce(), "");
}

TEST_F(Processes, AWorkerThatComesBackIsUsedWithinFiveSeconds) {
  ProcessCluster cluster({.model = model_});
  ASSERT_TRUE(cluster.WaitReady());
  cluster.Kill("decode-0");
  cluster.Kill("prefill-0");
  Answer refused =
      Generate(cluster.stub(), GreedyText("a", 2), {.deadline = std::chrono::seconds(3)});
  EXPECT_FALSE(refused.status.ok());
  cluster.Start("decode-0");
  cluster.Start("prefill-0");
  EXPECT_TRUE(cluster.WaitReady(std::chrono::seconds(5)));
  Answer answer = Generate(cluster.stub(), GreedyText("a", 2));
  EXPECT_TRUE(answer.ok()) << answer.Explain();
}

TEST_F(Processes, OfDifferentModelsAreRefusedByName) {
  const std::string other = WriteTinyModel(dir_, {.seed = 9}, "other.gguf");
  ProcessCluster cluster({.model = model_, .decode_flags = {"--model", other}});
  EXPECT_FALSE(cluster.WaitReady(std::chrono::seconds(3)));
  Answer answer = Generate(cluster.stub(), GreedyText("a", 2));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << answer.Explain();
}

// The default model, on the default path.
TEST(RealModel, SplitOverProcessesGivesTheTokensOfOneProcess) {
  v1::GenerateRequest request = GreedyText("The capital of France is", 24);
  Cluster::Options options{.model = RealModelPath()};
  options.prefill_runner.kv_memory_bytes = options.decode_runner.kv_memory_bytes = 64 << 20;
  const std::vector<uint32_t> expected = ReferenceIds(options, request);
  ProcessCluster cluster({.model = RealModelPath()});
  ASSERT_TRUE(cluster.WaitReady());
  Answer answer = Generate(cluster.stub(), request);
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.ids(), expected);
  EXPECT_NE(answer.choices[0].text.find("Paris"), std::string::npos) << answer.choices[0].text;
}

}  // namespace
}  // namespace setu::test
