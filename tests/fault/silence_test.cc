// SPDX-License-Identifier: Apache-2.0
// Links that fall silent: nothing arrives, nobody hears of an end. The kernel still acknowledges
// what a proxy swallows, so only what both sides say to each other (pings, reports, tokens) can
// show it: harder than a link that is down, where TCP itself gives up.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fault/links.h"
#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"
#include "tests/support/wait_until.h"

namespace setu::test {
namespace {

using std::chrono::seconds;

class SilenceTest : public ::testing::Test {
 protected:
  static constexpr FaultProxy::Harms kSilent = {.there = {.swallowed = true},
                                                .back = {.swallowed = true}};
  static constexpr FaultProxy::Harms kHeld = {.there = {.held = true}, .back = {.held = true}};

  void SetUp() override {
    ASSERT_TRUE(cluster_.WaitReady());
    ASSERT_TRUE(cluster_.WaitSeen("prefill"));
    ASSERT_TRUE(cluster_.WaitSeen("decode"));
  }
  // At the same time, each from its own client.
  std::vector<std::future<Answer>> Ask(int requests) {
    std::vector<std::future<Answer>> answers;
    for (int i = 0; i < requests; ++i) {
      answers.push_back(std::async(std::launch::async, [this] {
        return Generate(cluster_.stub(), request_,
                        {.deadline = seconds(120), .keep_going = [this](const auto&) {
                           ++responses_;
                           return true;
                         }});
      }));
    }
    return answers;
  }
  void ExpectWhole(std::vector<std::future<Answer>> answers) {
    for (std::future<Answer>& waiting : answers) {
      Answer answer = waiting.get();
      EXPECT_TRUE(answer.ok()) << answer.Explain();
      EXPECT_EQ(answer.ids(), expected_);
    }
  }
  void WaitForResponses(uint64_t more, std::chrono::milliseconds limit) const {
    const uint64_t before = responses_;
    WaitUntil(limit, [&] { return responses_ - before >= more; });
  }
  static v1::GenerateRequest Request() {
    v1::GenerateRequest request = GreedyText(std::string(90, 'a'), 1500);
    request.mutable_stopping()->set_ignore_eos(true);
    return request;
  }
  bool Runs(const std::string& worker) const {
    return cluster_.Metric(worker, "setu_num_requests_running").value_or(0) > 0;
  }

  TempDir dir_;
  const std::string model_ = WriteTinyModel(dir_, {.context = 2048});
  const v1::GenerateRequest request_ = Request();
  const std::vector<uint32_t> expected_ = ReferenceIds({.model = model_}, request_);
  std::atomic<uint64_t> responses_ = 0;
  Links links_;
  ProcessCluster cluster_{{.model = model_,
                           .prefill_workers = 2,
                           .decode_workers = 2,
                           .prefill_flags = {"--chunk-tokens", "32", "--kv-shm", "0"},
                           .reach = links_.reach()}};
};

TEST_F(SilenceTest, OfADecodeWorkerIsFoundWithin20SecondsAndItsRequestsGoOnElsewhere) {
  std::vector<std::future<Answer>> answers = Ask(8);
  ASSERT_TRUE(WaitUntil(seconds(20), [&] { return Runs("decode-0") && responses_ > 100; }));
  links_.To("decode-0").Harm(kSilent, cluster_.pid("router"));
  EXPECT_TRUE(WaitUntil(seconds(20),
                        [&] { return cluster_.Metric("router", "setu_decode_workers") == 1; }));
  ExpectWhole(Ask(2));  // the router waits for nobody
  ExpectWhole(std::move(answers));
  EXPECT_GT(cluster_.Metric("router", "setu_resumes_total").value_or(0), 0);
  // The worker finds by its own pings that nobody wants what it holds: 20 s, and 10 s for the
  // answer.
  EXPECT_EQ(cluster_.Quiesce(seconds(45)), "");
  links_.HealAll();
  EXPECT_TRUE(cluster_.WaitSeen("decode"));
  ASSERT_TRUE(WaitUntil(seconds(20), [&] {
    std::vector<std::future<Answer>> more = Ask(4);
    const bool used = WaitUntil(seconds(2), [&] { return Runs("decode-0"); });
    ExpectWhole(std::move(more));
    return used || HasFailure();
  })) << "the worker is not used again";
}

// The connection is there and dead, and only these two know.
TEST_F(SilenceTest, BetweenAPrefillAndADecodeWorkerCostsAPause) {
  FaultProxy& link = links_.To("decode-0");
  const auto swallowed = [&] { return link.counts().swallowed.load(); };
  ExpectWhole(Ask(16));
  // Of two that are idle the router takes the one that it measured as the faster.
  const auto sent = [&](const char* prefill) {
    return cluster_.Metric(prefill, "setu_kv_transfer_bytes_total").value_or(0);
  };
  const bool first = sent("prefill-0") > sent("prefill-1");
  link.Harm(kSilent, cluster_.pid(first ? "prefill-0" : "prefill-1"));
  for (int i = 0; i < 200 && swallowed() < 4000 && !HasFailure(); ++i) ExpectWhole(Ask(4));
  EXPECT_GE(swallowed(), 4000u) << "no KV went that way";
  EXPECT_EQ(cluster_.Metric("router", "setu_prefill_workers"), 2);
  EXPECT_EQ(cluster_.Metric("router", "setu_decode_workers"), 2);
  links_.HealAll();
  ExpectWhole(Ask(4));
  EXPECT_EQ(cluster_.Quiesce(seconds(45)), "");
}

struct Clog {
  uint64_t seed;
  seconds held;  // all links at once
};

// Every link stands still, one after the other in one order, and moves again in another.
class SwizzledLinks : public SilenceTest, public ::testing::WithParamInterface<Clog> {
 protected:
  using Link = std::pair<std::string, std::string>;  // from, to

  static std::vector<Link> All() {
    std::vector<Link> links;
    for (const char* decode : {"decode-0", "decode-1"}) {
      links.emplace_back("router", decode);
      for (const char* prefill : {"prefill-0", "prefill-1"}) links.emplace_back(prefill, decode);
    }
    for (const char* prefill : {"prefill-0", "prefill-1"}) links.emplace_back("router", prefill);
    return links;
  }
  void HarmEach(std::vector<Link> links, const FaultProxy::Harms& harms) {
    std::shuffle(links.begin(), links.end(), random_);
    for (const auto& [from, to] : links) {
      links_.To(to).Harm(harms, cluster_.pid(from));
      WaitForResponses(random_() % 200, std::chrono::milliseconds(random_() % 500));
    }
  }
  std::mt19937_64 random_{GetParam().seed};
};

TEST_P(SwizzledLinks, CostAPauseUnderLoad) {
  std::vector<std::future<Answer>> answers = Ask(12);
  ASSERT_TRUE(WaitUntil(seconds(20), [&] { return responses_ > 100; }));
  HarmEach(All(), kHeld);
  WaitForResponses(UINT64_MAX, GetParam().held);  // the time itself is what is tested
  HarmEach(All(), {});
  ExpectWhole(std::move(answers));
  EXPECT_TRUE(cluster_.WaitReady(seconds(20)));
  EXPECT_EQ(cluster_.Quiesce(seconds(45)), "");
}

// 12 s: longer than the patience with a silent worker.
INSTANTIATE_TEST_SUITE_P(Seeds, SwizzledLinks,
                         ::testing::Values(Clog{1, seconds(0)}, Clog{2, seconds(0)},
                                           Clog{3, seconds(12)}, Clog{4, seconds(12)}),
                         [](const auto& info) {
                           return absl::StrCat("Seed", info.param.seed, "Held",
                                               info.param.held.count());
                         });

}  // namespace
}  // namespace setu::test
