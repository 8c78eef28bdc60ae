// SPDX-License-Identifier: Apache-2.0
// Hundreds of workers behind one router. (What a placement among them costs is measured by
// tests/bench/router_bench.)
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/router/validator.h"
#include "setu/v1/inference.pb.h"
#include "tests/services/router/byte_tokenizer.h"
#include "tests/simulator/cluster.h"
#include "tests/simulator/hash_model.h"

namespace setu::simulator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ScaleTest : public ::testing::Test {
 protected:
  static constexpr int32_t kOfEachRole = 256;  // 512 workers

  static Scenario Workers() {
    Scenario scenario;
    PrefillSetup prefill;
    prefill.blocks = 256;
    prefill.slowness = 12;
    scenario.prefill.assign(kOfEachRole, prefill);
    DecodeSetup decode;
    decode.blocks = 1024;
    decode.slowness = 10;
    scenario.decode.assign(kOfEachRole, decode);
    scenario.router.queue.capacity = 1024;
    return scenario;
  }

  // A stream of requests, `rate` a second for so long; lengths and gaps are drawn.
  void Offer(int64_t rate, Duration length) {
    for (int64_t i = 0; i < rate * length / seconds(1); ++i) {
      timeline_.After(seconds(1) + dice_.Between(Duration(0), length), [this, i] { Ask(i); });
    }
  }

  void Ask(int64_t number) {
    setu::v1::GenerateRequest request;
    for (int32_t i = 0; i < 32; ++i) {
      request.mutable_token_ids()->add_ids(static_cast<uint32_t>(dice_.Below(256)));
    }
    request.mutable_sampling()->set_max_tokens(static_cast<uint32_t>(dice_.Between(16, 48)));
    request.mutable_stopping()->set_ignore_eos(true);
    Wish wish;
    wish.name = absl::StrCat("request-", number);
    wish.patience = seconds(60);
    auto valid = validator_.Validate(request.SerializeAsString(), {.context_length = kContext});
    ASSERT_TRUE(valid.ok()) << valid.status();
    clients_.push_back(
        std::make_shared<Client>(timeline_, judge_, asked_, *std::move(valid), std::move(wish)));
    clients_.back()->Ask(*cluster_.routers().front());
  }

  void RunUntil(TimePoint end) {
    while (judge_.wrong().empty() && timeline_.Now() < end && timeline_.RunNext()) {
    }
  }

  // How far above the mean the highest is, as a share of it.
  static double Excess(const std::vector<double>& loads) {
    const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / double(loads.size());
    return *std::max_element(loads.begin(), loads.end()) / mean - 1;
  }

  Dice dice_{1};
  Timeline timeline_{/*trace=*/false};
  Judge judge_{timeline_};
  Asked asked_;
  const Scenario scenario_ = Workers();
  const router::ByteTokenizer tokenizer_;
  const router::Validator validator_{{.name = "hash", .tokenizer = &tokenizer_},
                                     [] { return uint64_t{1}; }};
  std::vector<std::shared_ptr<Client>> clients_;
  Cluster cluster_{timeline_, dice_, scenario_};
};

TEST_F(ScaleTest, FiveHundredWorkersShareTheLoadWithinATenth) {
  constexpr int kSamples = 40;
  const TimePoint begin = timeline_.Now();
  Offer(/*rate=*/2500, /*length=*/seconds(4));
  std::vector<double> running(kOfEachRole), computed(kOfEachRole);
  for (int i = 0; i < kSamples; ++i) {
    RunUntil(begin + seconds(2) + i * milliseconds(75));
    for (int32_t w = 0; w < kOfEachRole; ++w) {
      running[w] += cluster_.decode()[w]->snapshot()->sequences;
    }
  }
  for (int32_t w = 0; w < kOfEachRole; ++w) {
    computed[w] = double(cluster_.prefill()[w]->snapshot()->tokens);
  }
  EXPECT_EQ(judge_.wrong(), "");
  EXPECT_LE(Excess(running), 0.1) << "sequences, on the average";
  EXPECT_LE(Excess(computed), 0.1) << "tokens of prompts, in all";
  RunUntil(begin + seconds(30));
  EXPECT_EQ(judge_.wrong(), "");
  for (const auto& client : clients_) ASSERT_TRUE(client->ended() && client->status().ok());
}

}  // namespace
}  // namespace setu::simulator
