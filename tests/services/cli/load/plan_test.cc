// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace setu::cli {
namespace {

constexpr uint32_t kVocabulary[] = {3, 5, 7, 11, 13, 17, 19, 23};

Workload Mixed() {
  WorkloadFlags flags;
  flags.prompt_tokens = "8..40";
  flags.max_tokens = "lognormal:30:0.7:200";
  flags.prefixes = 4;
  flags.prefix_tokens = 32;
  flags.cancel_share = 0.25;
  flags.cancel_after = "1..9";
  return *MakeWorkload("mixed", flags);
}

std::string Described(const Plan& plan, int64_t index) {
  const PlannedRequest request = plan.Request(index);
  return ::testing::PrintToString(std::make_tuple(request.prefix, request.prompt_tokens,
                                                  request.max_tokens, request.cancel_after,
                                                  plan.Prompt(index, request, kVocabulary)));
}

TEST(Plan, IsTheSameForTheSameSeeds) {
  const Workload workload = Mixed();
  const Plan one(workload, {.shape = 5, .content = 6}), two(workload, {.shape = 5, .content = 6});
  // In another order: a request does not depend on those before it.
  std::vector<std::string> forwards, backwards;
  for (int64_t i = 0; i < 200; ++i) forwards.push_back(Described(one, i));
  for (int64_t i = 200; i-- > 0;) backwards.push_back(Described(two, i));
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(forwards, backwards);
}

TEST(Plan, IsAnotherForAnotherSeed) {
  const Workload workload = Mixed();
  const Plan one(workload, {.shape = 5, .content = 6});
  const Plan shaped(workload, {.shape = 7, .content = 6});
  const Plan filled(workload, {.shape = 5, .content = 7});
  int same_shape = 0;
  for (int64_t i = 0; i < 100; ++i) {
    same_shape += one.Request(i).max_tokens == shaped.Request(i).max_tokens;
    EXPECT_EQ(one.Request(i).max_tokens, filled.Request(i).max_tokens);
    EXPECT_NE(Described(one, i), Described(filled, i));
  }
  EXPECT_LT(same_shape, 20);
}

TEST(Plan, SeedsOfSidesShareTheShapeAndOfNothingElseTheContent) {
  std::set<uint64_t> shapes, contents;
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t side = 0; side < 3; ++side) {
      for (uint32_t workload = 0; workload < 3; ++workload) {
        const Seeds seeds = SeedsOf(1, round, side, workload);
        shapes.insert(seeds.shape);
        contents.insert(seeds.content);
        EXPECT_EQ(seeds.shape, SeedsOf(1, round, 0, workload).shape);
      }
    }
  }
  EXPECT_EQ(shapes.size(), 9u);
  EXPECT_EQ(contents.size(), 27u);
  EXPECT_NE(SeedsOf(1, 0, 0, 0).shape, SeedsOf(2, 0, 0, 0).shape);
}

TEST(Plan, PromptsOfAPrefixShareItAndNothingElse) {
  const Workload workload = Mixed();
  const Plan plan(workload, {.shape = 1, .content = 1});
  std::map<int32_t, std::set<std::vector<uint32_t>>> heads;
  std::set<std::vector<uint32_t>> tails;
  for (int64_t i = 0; i < 100; ++i) {
    const PlannedRequest request = plan.Request(i);
    const std::vector<uint32_t> ids = plan.Prompt(i, request, kVocabulary);
    ASSERT_EQ(ids.size(), 32u + static_cast<size_t>(request.prompt_tokens));
    heads[*request.prefix].emplace(ids.begin(), ids.begin() + 32);
    tails.emplace(ids.begin() + 32, ids.begin() + 40);
  }
  EXPECT_EQ(heads.size(), 4u);
  std::set<std::vector<uint32_t>> different;
  for (const auto& [prefix, texts] : heads) {
    EXPECT_EQ(texts.size(), 1u);
    different.insert(*texts.begin());
  }
  EXPECT_EQ(different.size(), 4u);
  EXPECT_EQ(tails.size(), 100u);
}

TEST(Plan, CancelsItsShare) {
  const Workload workload = Mixed();
  const Plan plan(workload, {.shape = 1, .content = 1});
  int cancelled = 0;
  for (int64_t i = 0; i < 4000; ++i) {
    const auto after = plan.Request(i).cancel_after;
    cancelled += after.has_value();
    EXPECT_TRUE(after.value_or(1) >= 1 && after.value_or(9) <= 9);
  }
  EXPECT_NEAR(cancelled, 1000, 100);
}

TEST(Plan, OfATraceHasItsLengths) {
  Workload workload = Mixed();
  workload.arrivals = *ParseTrace("t", "0 17 4\n1 99 5\n");
  const Plan plan(workload, {.shape = 1, .content = 1});
  EXPECT_EQ(plan.Request(1).prompt_tokens, 99);
  EXPECT_EQ(plan.Request(1).max_tokens, 5);
}

}  // namespace
}  // namespace setu::cli
