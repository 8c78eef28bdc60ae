// SPDX-License-Identifier: Apache-2.0
// Real processes, each in a network namespace of its own, over links that lose packets: all of
// them, those of one way, the long ones, some. Here TCP itself meets the fault: nothing is
// acknowledged, and nobody hears of an end. A request may go on elsewhere; it never gets another
// token, and when the link is whole again everything is as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/lan.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"
#include "tests/support/wait_until.h"

namespace setu::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kLong = 1500;  // tokens: it runs for long enough that a fault meets it
constexpr Lan::Way kParted = {.lost = 1};
// Less than a prompt or a frame of KV, more than a ping.
constexpr Lan::Way kShortOnly = {.longest = 300};
// Pings find it in 20 s, a new connection begins 2 s later at most.
constexpr seconds kFound(30), kBack(30);
// A worker hears by its own pings, 20 s and 10 s for the answer, that nobody wants what it holds.
constexpr seconds kFreed(45);

class PartitionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Lan>> lan =
        Lan::Make({"router", "prefill-0", "prefill-1", "decode-0", "decode-1"});
    if (!lan.ok()) GTEST_SKIP() << lan.status().message();
    lan_ = *std::move(lan);
    alone_.emplace(Cluster::Options{.model = model_});
    ASSERT_TRUE(alone_->WaitReady());
    cluster_.emplace(
        ProcessCluster::Options{.model = model_,
                                .prefill_workers = 2,
                                .decode_workers = 2,
                                .prefill_flags = {"--chunk-tokens", "64", "--kv-shm", "0"},
                                .lan = lan_.get()});
    ASSERT_TRUE(cluster_->WaitReady());
    ASSERT_TRUE(cluster_->WaitSeen("prefill"));
    ASSERT_TRUE(cluster_->WaitSeen("decode"));
  }

  // Prompts that share no block, so that each has KV to send.
  v1::GenerateRequest NewRequest(uint32_t tokens) {
    std::vector<uint32_t> ids(200, kTinyFirstByte + 'a');
    ids[0] = kTinyFirstByte + asked_ % 256;
    ids[1] = kTinyFirstByte + asked_++ / 256;
    v1::GenerateRequest request = GreedyRequest(ids, tokens);
    request.mutable_stopping()->set_ignore_eos(true);
    return request;
  }
  // At the same time, each from its own client. Each comes to a whole and right answer.
  std::vector<std::future<void>> Ask(int requests, uint32_t tokens = 50) {
    std::vector<std::future<void>> answers;
    for (int i = 0; i < requests; ++i) {
      answers.push_back(std::async(std::launch::async, [this, request = NewRequest(tokens)] {
        Answer answer = Generate(cluster_->stub(), request, {.deadline = seconds(120)});
        EXPECT_TRUE(answer.ok()) << answer.Explain();
        EXPECT_EQ(answer.ids(), Generate(alone_->stub(), request).ids());
      }));
    }
    return answers;
  }
  // Requests, as many as every worker needs to have something to do, until that was reached.
  void AskUntil(const std::function<bool()>& reached) {
    constexpr int kMostRounds = 500;
    for (int i = 0; i < kMostRounds && !HasFailure(); ++i) {
      Ask(4).clear();
      if (reached()) return;
    }
    if (!HasFailure()) ADD_FAILURE() << "that was never reached";
  }
  double Count(const std::string& name, const std::string& metric) const {
    return cluster_->Metric(name, metric).value_or(0);
  }
  bool Runs(const std::string& worker) const {
    return Count(worker, "setu_num_requests_running") > 0;
  }
  // Long requests, of which the worker runs some now.
  std::vector<std::future<void>> AskWhileRuns(const std::string& worker) {
    std::vector<std::future<void>> answers;
    do {
      answers.clear();
      answers = Ask(8, kLong);
    } while (!WaitUntil(seconds(2), [&] { return Runs(worker); }) && !HasFailure());
    return answers;
  }
  bool Counted(const std::string& role, int workers) const {
    return cluster_->Metric("router", absl::StrCat("setu_", role, "_workers")) == workers;
  }
  void ExpectAllInSight() const { EXPECT_TRUE(Counted("prefill", 2) && Counted("decode", 2)); }
  // As before any fault: all are seen, nothing is held, and the worker works.
  void ExpectHeals(const std::string& worker) {
    lan_->Heal();
    EXPECT_TRUE(WaitUntil(kBack, [&] { return Counted("prefill", 2) && Counted("decode", 2); }));
    EXPECT_EQ(cluster_->Quiesce(kFreed), "");
    const double before = Count(worker, "setu_steps_total");
    AskUntil([&] { return Count(worker, "setu_steps_total") > before; });
    EXPECT_EQ(cluster_->Quiesce(), "");
  }
  uint64_t Lost(const std::string& a, const std::string& b) const {
    return lan_->counts(a, b).lost + lan_->counts(b, a).lost;
  }
  // Of those that are idle the router takes the prefill worker that it measured as the fastest, so
  // it may be the only one that sends.
  std::string BusiestPrefill() {
    int rounds = 0;
    AskUntil([&] { return ++rounds == 10; });
    constexpr const char* kSent = "setu_kv_transfer_bytes_total";
    return Count("prefill-0", kSent) > Count("prefill-1", kSent) ? "prefill-0" : "prefill-1";
  }
  double Retries() const { return Count("router", "setu_prefill_retries_total"); }

  TempDir dir_;
  const std::string model_ = WriteTinyModel(dir_, {.context = 2048});
  std::unique_ptr<Lan> lan_;
  std::optional<Cluster> alone_;
  std::optional<ProcessCluster> cluster_;
  std::atomic<uint32_t> asked_ = 0;
};

struct Cut {
  const char* name;
  bool there, back;
};

constexpr Cut kCuts[] = {{"BothWays", true, true}, {"There", true, false}, {"Back", false, true}};

class Parted : public PartitionsTest, public ::testing::WithParamInterface<Cut> {
 protected:
  void Part(const std::string& from, const std::string& to) const {
    if (GetParam().there) lan_->Harm(from, to, kParted);
    if (GetParam().back) lan_->Harm(to, from, kParted);
  }
  // Found, gone around meanwhile, and used again.
  void CostsAPause(const std::string& worker) {
    const std::string role = worker.substr(0, worker.find('-'));
    std::vector<std::future<void>> answers = AskWhileRuns(worker);
    Part("router", worker);
    std::future<bool> found = std::async(
        std::launch::async, [&] { return WaitUntil(kFound, [&] { return Counted(role, 1); }); });
    AskUntil([&] { return found.wait_for(seconds(0)) == std::future_status::ready; });
    EXPECT_TRUE(found.get());
    answers.clear();
    EXPECT_GT(Lost("router", worker), 0u);
    EXPECT_EQ(cluster_->Quiesce(kFreed), "");
    ExpectHeals(worker);
  }
};

TEST_P(Parted, RouterFromADecodeWorkerCostsAPause) {
  CostsAPause("decode-0");
  EXPECT_GT(Count("router", "setu_resumes_total"), 0);
}

TEST_P(Parted, RouterFromAPrefillWorkerCostsAPause) { CostsAPause("prefill-0"); }

// Only these two know, and nobody's health suffers.
TEST_P(Parted, PrefillFromADecodeWorkerLeavesTheOtherPairs) {
  const std::string sender = BusiestPrefill();
  Part(sender, "decode-0");
  AskUntil([&] { return Retries() > 0; });
  EXPECT_GT(Lost(sender, "decode-0"), 0u);
  ExpectAllInSight();
  const uint64_t passed = lan_->counts(sender, "decode-0").passed;
  ExpectHeals(sender);
  AskUntil([&] { return lan_->counts(sender, "decode-0").passed > passed + 1000; });
}

INSTANTIATE_TEST_SUITE_P(Ways, Parted, ::testing::ValuesIn(kCuts),
                         [](const auto& info) { return info.param.name; });

// As behind a tunnel whose end tells nobody that packets are too long for it: connections begin and
// live on, but for what is sent over them.
TEST_F(PartitionsTest, ALinkThatLosesLongPacketsOfKvLeavesTheOtherPairs) {
  const std::string sender = BusiestPrefill();
  lan_->Harm(sender, "decode-0", kShortOnly);
  AskUntil([&] { return Retries() > 0; });
  EXPECT_GT(Lost(sender, "decode-0"), 0u);
  ExpectAllInSight();
  ExpectHeals(sender);
}

TEST_F(PartitionsTest, ALinkThatLosesLongPacketsOfPromptsLeavesTheOtherWorkers) {
  lan_->Harm("router", "decode-0", kShortOnly);
  AskUntil([&] { return Lost("router", "decode-0") > 0; });
  ExpectHeals("decode-0");
}

TEST_F(PartitionsTest, LinksThatLoseDoubleAndShuffleCostTimeOnly) {
  for (const char* host : {"prefill-0", "prefill-1", "decode-0", "decode-1"}) {
    lan_->HarmAll(host, {.lost = 0.03, .doubled = 0.03, .delay = milliseconds(20)});
  }
  const auto lost = [&] { return Lost("prefill-0", "decode-0") + Lost("prefill-1", "decode-0"); };
  AskUntil([&] { return lost() > 20 && Lost("router", "decode-0") > 20; });
  EXPECT_EQ(Retries(), 0);
  ExpectHeals("decode-0");
}

// As when its cable is pulled and put in again: its own sockets are told, and nobody else's.
TEST_F(PartitionsTest, AWorkerWithoutItsDeviceCostsAPause) {
  std::vector<std::future<void>> answers = AskWhileRuns("decode-0");
  lan_->Unplug("decode-0");
  AskUntil([&] { return Counted("decode", 1); });
  answers.clear();
  EXPECT_EQ(cluster_->Quiesce(kFreed), "");
  lan_->Plug("decode-0");
  ExpectHeals("decode-0");
}

// Nobody hears of its end, and its address is another's before they miss it.
TEST_F(PartitionsTest, AWorkerThatIsReplacedInTheDarkIsUsedAgain) {
  for (const std::string worker : {"decode-0", "prefill-0"}) {
    std::vector<std::future<void>> answers = AskWhileRuns(worker);
    lan_->HarmAll(worker, kParted);
    cluster_->Kill(worker);
    cluster_->Start(worker);
    lan_->Heal();
    answers.clear();
    ExpectHeals(worker);
  }
}

// Whatever the links do, one after the other: then an answer may end, but it says so, and no token
// of it is wrong.
class BadTimes : public PartitionsTest, public ::testing::WithParamInterface<uint64_t> {
 protected:
  void AskInBadTimes() {
    const v1::GenerateRequest request = NewRequest(kLong);
    Answer answer = Generate(cluster_->stub(), request, {.deadline = seconds(120)});
    EXPECT_TRUE(answer.broken.empty()) << answer.Explain();
    std::vector<uint32_t> whole = Generate(alone_->stub(), request).ids();
    if (!answer.status.ok()) {
      EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE) << answer.Explain();
      EXPECT_LT(answer.ids().size(), whole.size());
      whole.resize(std::min(whole.size(), answer.ids().size()));
    }
    EXPECT_EQ(answer.ids(), whole);
  }
  std::string AHost() {
    constexpr const char* kHosts[] = {"router", "prefill-0", "prefill-1", "decode-0", "decode-1"};
    return kHosts[random_() % std::size(kHosts)];
  }
  std::mt19937_64 random_{GetParam()};
};

TEST_P(BadTimes, EndInGoodOnes) {
  constexpr Lan::Way kWays[] = {
      kParted, kShortOnly, {.lost = 0.2}, {.doubled = 0.2, .delay = milliseconds(100)}, {}};
  std::atomic<bool> over = false;
  std::vector<std::future<void>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::async(std::launch::async, [&] {
      while (!over && !HasFailure()) AskInBadTimes();
    }));
  }
  for (int i = 0; i < 40; ++i) {
    lan_->Harm(AHost(), AHost(), kWays[random_() % std::size(kWays)]);
    // The time itself is what is tested: what some of them do takes seconds to be found.
    WaitUntil(milliseconds(random_() % 1000), [] { return false; });
  }
  lan_->Heal();
  over = true;
  clients.clear();
  EXPECT_GT(Lost("router", "decode-0") + Lost("router", "decode-1"), 0u);
  EXPECT_TRUE(cluster_->WaitReady(kBack));
  for (const char* worker : {"decode-0", "decode-1", "prefill-0"}) ExpectHeals(worker);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BadTimes, ::testing::Values(1, 2),
                         [](const auto& info) { return absl::StrCat("Seed", info.param); });

}  // namespace
}  // namespace setu::test
