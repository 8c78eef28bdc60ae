// SPDX-License-Identifier: Apache-2.0
// Real processes whose links break: bytes turned, ends in the middle, delays and partitions between
// prefill and decode, while the router reaches both. A request may take another pair; it never gets
// another token.
#include "tests/fault/links.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <string>
#include <vector>

#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"

namespace setu::test {
namespace {

using std::chrono::milliseconds;

class LinksTest : public ::testing::Test {
 protected:
  // Prompts that share no block, so that each has KV to send.
  v1::GenerateRequest NewRequest() {
    std::vector<uint32_t> ids(200, kTinyFirstByte + 'a');
    ids[0] = kTinyFirstByte + asked_ % 256;
    ids[1] = kTinyFirstByte + asked_++ / 256;
    v1::GenerateRequest request = GreedyRequest(ids, 24);
    request.mutable_stopping()->set_ignore_eos(true);
    return request;
  }
  std::vector<uint32_t> Reference(const v1::GenerateRequest& request) {
    Answer answer = Generate(alone_.stub(), request);
    EXPECT_TRUE(answer.ok()) << answer.Explain();
    return answer.ids();
  }
  // Requests until that was reached, whose answers are all whole and right. `how` says it anew for
  // each of them.
  void AskUntil(
      const std::function<bool()>& reached,
      const std::function<CallOptions()>& how = [] { return CallOptions(); }) {
    constexpr int kMostRounds = 500;
    for (int i = 0; i < kMostRounds && !HasFailure(); ++i) {
      std::vector<std::future<void>> clients;  // so many that every worker has something to do
      for (int client = 0; client < 4; ++client) {
        clients.push_back(
            std::async(std::launch::async, [&, request = NewRequest(), options = how()] {
              Answer answer = Generate(cluster_.stub(), request, options);
              EXPECT_TRUE(answer.ok()) << answer.Explain();
              EXPECT_EQ(answer.ids(), Reference(request));
            }));
      }
      clients.clear();
      if (reached()) return;
    }
    if (!HasFailure()) ADD_FAILURE() << "the fault was never met";
  }
  // As above, of a link that is whole again at the end.
  void AskUntil(FaultProxy& link, const std::function<bool()>& reached) {
    AskUntil(reached);
    link.Heal();
    AskUntil([] { return true; });
    EXPECT_EQ(cluster_.Quiesce(), "");
  }
  // Of those that are idle the router takes the prefill worker that it measured as the fastest, so
  // it may be the only one that sends.
  std::string BusiestPrefill() {
    int rounds = 0;
    AskUntil([&] { return ++rounds == 10; });
    constexpr const char* kSent = "setu_kv_transfer_bytes_total";
    return Count("prefill-0", kSent) > Count("prefill-1", kSent) ? "prefill-0" : "prefill-1";
  }
  uint64_t Retries() const { return Count("router", "setu_prefill_retries_total"); }
  uint64_t Resumes() const { return Count("router", "setu_resumes_total"); }
  uint64_t Count(const std::string& name, const std::string& metric) const {
    return static_cast<uint64_t>(cluster_.Metric(name, metric).value_or(0));
  }
  void ExpectAllInSight() const {
    EXPECT_EQ(cluster_.Metric("router", "setu_prefill_workers"), 2);
    EXPECT_EQ(cluster_.Metric("router", "setu_decode_workers"), 2);
  }

  TempDir dir_;
  const std::string model_ = WriteTinyModel(dir_);
  Cluster alone_{{.model = model_}};
  Links links_;
  ProcessCluster cluster_{{.model = model_,
                           .prefill_workers = 2,
                           .decode_workers = 2,
                           .prefill_flags = {"--chunk-tokens", "64", "--kv-shm", "0"},
                           .reach = links_.reach()}};
  FaultProxy& link_ = links_.To("decode-0");
  uint32_t asked_ = 0;

  void SetUp() override {
    ASSERT_TRUE(alone_.WaitReady());
    ASSERT_TRUE(cluster_.WaitReady());
    ASSERT_TRUE(cluster_.WaitSeen("prefill"));
    ASSERT_TRUE(cluster_.WaitSeen("decode"));
  }
};

// From the busiest prefill worker to decode-0, of the four.
class KvLink : public LinksTest {
 protected:
  // No connection goes on, and there is no new one.
  static constexpr FaultProxy::Harms kParted = {.there = {.end_after = 0}, .refuse = true};

  void SetUp() override {
    LinksTest::SetUp();
    sender_ = cluster_.pid(BusiestPrefill());
  }
  pid_t sender_ = -1;
};

TEST_F(KvLink, ThatIsSlowCostsTimeOnly) {
  link_.Harm({.there = {.delay = milliseconds(200)}, .back = {.delay = milliseconds(200)}},
             sender_);
  AskUntil(link_, [&] { return link_.counts().delayed > 0; });
  EXPECT_EQ(Retries(), 0u);
}

// So many bits turn that hardly a message is whole: HTTP/2 itself fails.
TEST_F(KvLink, ThatTurnsManyBitsIsLeft) {
  link_.Harm({.there = {.flips = 0.01}}, sender_);
  AskUntil(link_, [&] { return link_.counts().flipped > 0 && Retries() >= 2; });
}

// So few that frames arrive, with other bytes than were sent.
TEST_F(KvLink, ThatTurnsABitOfAFrameIsFoundByItsChecksum) {
  link_.Harm({.there = {.flips = 1e-4}}, sender_);
  AskUntil(link_, [&] { return Count("decode-0", "setu_kv_transfers_failed_total") > 0; });
  EXPECT_GT(Retries(), 0u);
}

TEST_F(KvLink, ThatEndsInTheMiddleIsLeft) {
  link_.Harm({.there = {.end_after = 5000}}, sender_);
  AskUntil(link_, [&] { return link_.counts().ended >= 2 && Retries() >= 2; });
}

// As in a network whose parts see different parts of it. Nobody's health suffers.
TEST_F(KvLink, ThatIsPartedLeavesTheOtherPairs) {
  link_.Harm(kParted, sender_);
  AskUntil(link_, [&] { return link_.counts().refused > 0 && Retries() >= 2; });
  ExpectAllInSight();
}

TEST_F(KvLink, ThatIsPartedFromEveryPrefillWorkerLeavesTheOtherDecodeWorker) {
  for (const char* name : {"prefill-0", "prefill-1"}) {
    link_.Harm(kParted, cluster_.pid(name));
  }
  AskUntil(link_, [&] { return link_.counts().refused > 0 && Resumes() >= 2; });
  ExpectAllInSight();
}

using RouterLink = LinksTest;  // from the router to decode-0

TEST_F(RouterLink, ThatIsCutMidStreamCostsNoToken) {
  const auto cutting = [&] {
    return ActAfter(5, [&] {
      if (Count("decode-0", "setu_num_requests_running") == 0) return false;
      link_.Cut();
      return true;
    });
  };
  AskUntil([&] { return Resumes() >= 3; }, cutting);
  EXPECT_EQ(cluster_.Quiesce(), "");
}

}  // namespace
}  // namespace setu::test
