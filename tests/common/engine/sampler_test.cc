// SPDX-License-Identifier: Apache-2.0
#include "common/engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "common/engine/philox.h"

namespace setu::engine {
namespace {

using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// The id after `ids` (prompt, then generated) under `params`.
TokenId Next(const std::vector<float>& logits, const SamplingParams& params,
             const std::vector<TokenId>& ids = {}, int32_t prompt_length = 0) {
  Sampler sampler(static_cast<int32_t>(logits.size()));
  return sampler.Sample(logits, params, {ids, prompt_length}, 0).id;
}

SamplingParams Greedy() { return {.temperature = 0.0f}; }

std::vector<float> RandomLogits(std::mt19937& random, int32_t vocabulary) {
  std::normal_distribution<float> normal(0.0f, 3.0f);
  std::vector<float> logits(vocabulary);
  // A coarse grid, so that ties are common.
  for (float& logit : logits) logit = std::round(normal(random) * 4.0f) / 4.0f;
  return logits;
}

// What is left to draw from, likeliest first, by a full sort in double: the rules read aloud.
struct Kept {
  std::vector<TokenId> ids;
  std::vector<double> weights;
  double mass = 0.0;
};

Kept Reference(const std::vector<float>& logits, const SamplingParams& params) {
  Kept kept;
  kept.ids.resize(logits.size());
  std::iota(kept.ids.begin(), kept.ids.end(), 0);
  std::ranges::stable_sort(kept.ids, [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
  if (params.top_k > 0) {
    kept.ids.resize(std::min<size_t>(kept.ids.size(), params.top_k));
  }
  double total = 0.0;
  for (TokenId id : kept.ids) {
    kept.weights.push_back(std::exp((logits[id] - logits[kept.ids[0]]) / params.temperature));
    total += kept.weights.back();
  }
  size_t count = 0;
  while (count < kept.ids.size() && kept.mass < params.top_p * total &&
         kept.weights[count] >= params.min_p) {
    kept.mass += kept.weights[count++];
  }
  kept.ids.resize(count);
  return kept;
}

TEST(Sampler, DrawsWhatTheRulesReadAloudDraw) {
  std::mt19937 random(7);
  int checked = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto vocabulary = static_cast<int32_t>(2 + random() % 200);
    const std::vector<float> logits = RandomLogits(random, vocabulary);
    SamplingParams params;
    params.seed = random();
    params.temperature = std::array{0.1f, 0.7f, 1.0f, 3.0f}[random() % 4];
    params.top_k = std::array{0, 1, 5, 40, 1000}[random() % 5];
    params.top_p = std::array{1.0f, 0.95f, 0.5f, 0.01f}[random() % 4];
    params.min_p = std::array{0.0f, 0.05f, 0.5f}[random() % 3];
    const std::vector<TokenId> ids(random() % 50, 0);
    const auto choice = static_cast<uint32_t>(random() % 4);

    const Kept kept = Reference(logits, params);
    const double target = UniformAt(params.seed, ids.size(), choice) * kept.mass;
    size_t rank = 0;
    double below = kept.weights[0];
    while (below <= target && rank + 1 < kept.ids.size()) below += kept.weights[++rank];
    // Where rounding may decide, nothing is claimed.
    if (std::abs(below - target) < 1e-4 * kept.mass ||
        std::abs(below - kept.weights[rank] - target) < 1e-4 * kept.mass) {
      continue;
    }
    ++checked;
    Sampler sampler(vocabulary);
    const SamplingParams& p = params;
    ASSERT_EQ(sampler.Sample(logits, params, {ids, 0}, choice).id, kept.ids[rank])
        << "round " << round << " temperature " << p.temperature << " top_k " << p.top_k
        << " top_p " << p.top_p << " min_p " << p.min_p;
  }
  EXPECT_GT(checked, 1500);
}

TEST(Sampler, DrawsInProportion) {
  const std::vector<double> shares = {0.5, 0.25, 0.125, 0.125};
  std::vector<float> logits;
  for (double share : shares) logits.push_back(static_cast<float>(std::log(share)));
  Sampler sampler(4);
  std::vector<TokenId> ids;
  std::vector<int> drawn(4, 0);
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    ids.push_back(sampler.Sample(logits, {.seed = 3}, {ids, 0}, 0).id);
    ++drawn[ids.back()];
  }
  // Four standard deviations.
  for (int id = 0; id < 4; ++id) {
    EXPECT_NEAR(drawn[id], shares[id] * kDraws,
                4 * std::sqrt(kDraws * shares[id] * (1 - shares[id])));
  }
}

TEST(Sampler, GreedyTakesTheHighestAndTheLowestIdOfEquals) {
  EXPECT_EQ(Next({1.0f, 3.0f, 2.0f, 3.0f}, Greedy()), 1);
  EXPECT_EQ(Next({1.0f, 3.0f, 2.0f, 3.0f}, {.temperature = 9e-6f}), 1);
  EXPECT_EQ(Next({5.0f, 5.0f, 5.0f}, {.temperature = 2.0f, .top_k = 1, .seed = 9}), 0);
  EXPECT_EQ(Next({5.0f, 5.0f, 5.0f}, {.temperature = 2.0f, .top_p = 1e-6f, .seed = 9}), 0);
}

TEST(Sampler, TinyTemperaturesDoNotOverflow) {
  EXPECT_EQ(Next({-90.0f, 50.0f, 49.0f}, {.temperature = 1e-5f, .seed = 1}), 1);
}

TEST(Sampler, RepetitionPenaltySeesPromptAndGenerated) {
  SamplingParams params = Greedy();
  params.repetition_penalty = 2.0f;
  EXPECT_EQ(Next({2.0f, 1.5f}, params, {0}, 1), 1) << "prompt, positive: divided";
  EXPECT_EQ(Next({2.0f, 1.5f}, params, {0}, 0), 1) << "generated";
  EXPECT_EQ(Next({-1.0f, -1.5f}, params, {0}, 1), 1) << "negative: multiplied";
  EXPECT_EQ(Next({2.0f, 0.9f}, params, {0, 0, 0}, 2), 0) << "once, however often it was seen";
}

TEST(Sampler, FrequencyAndPresenceSeeOnlyGenerated) {
  SamplingParams frequency = Greedy();
  frequency.frequency_penalty = 0.4f;
  EXPECT_EQ(Next({1.0f, 0.0f}, frequency, {0, 0, 0}, 3), 0) << "all prompt";
  EXPECT_EQ(Next({1.0f, 0.0f}, frequency, {0, 0, 0}, 1), 0) << "two generated";
  EXPECT_EQ(Next({1.0f, 0.0f}, frequency, {0, 0, 0}, 0), 1) << "three generated";
  SamplingParams presence = Greedy();
  presence.presence_penalty = 0.9f;
  EXPECT_EQ(Next({1.0f, 0.0f}, presence, {0, 0, 0}, 0), 0) << "once, however often";
  presence.presence_penalty = 1.1f;
  EXPECT_EQ(Next({1.0f, 0.0f}, presence, {0, 0, 0}, 0), 1);
  EXPECT_EQ(Next({1.0f, 0.0f}, presence, {0, 0, 0}, 3), 0);
}

TEST(Sampler, BiasIsAddedAfterPenalties) {
  SamplingParams params = Greedy();
  params.logit_bias = {{0, 1.0f}, {2, -5.0f}};
  EXPECT_EQ(Next({1.0f, 1.5f, 4.0f}, params), 0);
  params.repetition_penalty = 4.0f;  // (1 + 1) / 4 would lose
  EXPECT_EQ(Next({1.0f, 1.2f, 4.0f}, params, {0}, 1), 0);
}

TEST(Sampler, MinTokensHoldsEndIdsBack) {
  SamplingParams params = Greedy();
  params.min_tokens = 2;
  params.end_ids = {1, 2};
  const std::vector<float> logits = {1.0f, 5.0f, 4.0f};
  EXPECT_EQ(Next(logits, params, {0, 0}, 2), 0) << "none generated";
  EXPECT_EQ(Next(logits, params, {0, 0, 0}, 2), 0) << "one generated";
  EXPECT_EQ(Next(logits, params, {0, 0, 0, 0}, 2), 1) << "two generated";
}

TEST(Sampler, LogprobsAreOfTheRawLogits) {
  std::mt19937 random(11);
  const std::vector<float> logits = RandomLogits(random, 50);
  SamplingParams params = {.temperature = 0.3f,
                           .top_k = 3,
                           .repetition_penalty = 1.7f,
                           .presence_penalty = 1.0f,
                           .logit_bias = {{4, 2.0f}},
                           .want_logprobs = true,
                           .top_logprobs = 50};
  Sampler sampler(50);
  const SampledToken token = sampler.Sample(logits, params, {std::vector<TokenId>{1, 2, 3}, 1}, 0);
  double sum = 0.0;
  for (float logit : logits) sum += std::exp(logit);
  ASSERT_EQ(token.top.size(), 50u);
  for (size_t i = 0; i < token.top.size(); ++i) {
    const TopToken& t = token.top[i];
    EXPECT_NEAR(t.logprob, logits[t.id] - std::log(sum), 1e-5);
    if (t.id == token.id) {
      EXPECT_EQ(t.logprob, token.logprob);
    }
    if (i > 0) {
      const TopToken& before = token.top[i - 1];
      EXPECT_TRUE(before.logprob > t.logprob || (before.logprob == t.logprob && before.id < t.id));
    }
  }
  params.top_logprobs = 2;
  const SampledToken few = sampler.Sample(logits, params, {std::vector<TokenId>{1, 2, 3}, 1}, 0);
  EXPECT_EQ(few.id, token.id);
  EXPECT_THAT(few.top, ElementsAre(token.top[0], token.top[1]));
  params.want_logprobs = false;
  const SampledToken none = sampler.Sample(logits, params, {std::vector<TokenId>{1, 2, 3}, 1}, 0);
  EXPECT_EQ(none, (SampledToken{.id = token.id}));
}

TEST(Sampler, BadLogitsHaveDefinedOutcomes) {
  const std::vector<float> bad = {kNaN, 1.0f, -kInfinity, 0.5f, kNaN};
  for (uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_THAT(Next(bad, {.top_k = 4, .seed = seed}), testing::AnyOf(1, 3));
    EXPECT_THAT(Next(bad, {.top_p = 0.9f, .seed = seed}), testing::AnyOf(1, 3));
    EXPECT_EQ(Next({0.0f, kInfinity, kInfinity}, {.top_k = 1, .seed = seed}), 1);
    EXPECT_THAT(Next({0.0f, kInfinity, kInfinity}, {.seed = seed}), testing::AnyOf(1, 2));
    EXPECT_EQ(Next({kNaN, kNaN, -kInfinity}, {.top_p = 0.5f, .seed = seed}), 0);
  }
  EXPECT_EQ(Next(bad, Greedy()), 1);
  Sampler sampler(5);
  const SampledToken token =
      sampler.Sample(bad, {.want_logprobs = true, .top_logprobs = 5}, {{}, 0}, 0);
  EXPECT_THAT(token.top, testing::Each(testing::Field(&TopToken::logprob, testing::Le(0.0f))));
  EXPECT_EQ(token.top[2], (TopToken{0, -kInfinity}));
}

TEST(Sampler, KeepsNothingBetweenCalls) {
  std::mt19937 random(3);
  const std::vector<float> logits = RandomLogits(random, 30);
  std::vector<TokenId> ids(20);
  for (TokenId& id : ids) id = static_cast<TokenId>(random() % 30);
  const SamplingParams params = {.top_p = 0.9f,
                                 .seed = 5,
                                 .repetition_penalty = 1.3f,
                                 .frequency_penalty = 0.2f,
                                 .want_logprobs = true,
                                 .top_logprobs = 3};
  Sampler fresh(30);
  const SampledToken expected = fresh.Sample(logits, params, {ids, 5}, 1);
  Sampler used(30);
  for (int i = 0; i < 20; ++i) {
    used.Sample(RandomLogits(random, 30), params, {std::span(ids).first(i), i / 2}, 0);
    EXPECT_EQ(used.Sample(logits, params, {ids, 5}, 1), expected);
  }
}

TEST(UniformAt, IsTheFirstWordOfTheBlockOfSeedPositionAndChoice) {
  EXPECT_EQ(UniformAt(0, 0, 0), static_cast<float>(0x6627e8d5 >> 8) / 16777216.0f);
  const uint32_t word = Philox4x32({0x243f6a88, 0x85a308d3, 5, 0}, {0xa4093822, 0x299f31d0})[0];
  EXPECT_EQ(UniformAt(0x299f31d0a4093822, 0x85a308d3243f6a88, 5),
            static_cast<float>(word >> 8) / 16777216.0f);
  for (uint64_t position = 0; position < 1000; ++position) {
    const float u = UniformAt(42, position, 0);
    EXPECT_GE(u, 0.0f);
    EXPECT_LT(u, 1.0f);
  }
}

TEST(EndOf, NamesTheReason) {
  const SamplingParams params = {.max_tokens = 3, .end_ids = {2, 9}};
  EXPECT_EQ(EndOf(params, 5, 1), EndReason::kNone);
  EXPECT_EQ(EndOf(params, 9, 1), EndReason::kEndId);
  EXPECT_EQ(EndOf(params, 5, 3), EndReason::kMaxTokens);
  EXPECT_EQ(EndOf(params, 2, 3), EndReason::kEndId) << "an end id is an end of its own";
}

}  // namespace
}  // namespace setu::engine
