// SPDX-License-Identifier: Apache-2.0
#include "services/decode/step_budget.h"

#include <gtest/gtest.h>

#include "tests/common/roofline/model_fixture.h"

namespace setu::decode {
namespace {

using std::chrono::milliseconds;

const roofline::StepModel kModel = roofline::BillionModel();
const roofline::StepRows kBatch = roofline::DecodeRows(8, 200);

double Predicted(int32_t tokens) {
  roofline::StepRows rows = kBatch;
  rows.Add(tokens, 0, true);
  return kModel.Terms(rows).seconds();
}

Duration Seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// What the model says of a step with so many tokens, and a little more.
Duration TimeFor(int32_t tokens) { return Seconds(1.001 * Predicted(tokens)); }

TEST(StepBudget, WithoutATargetOrABatchAStepTakesWholeChunks) {
  const StepBudget budget(kModel, {.chunk_tokens = 128});
  EXPECT_EQ(budget.Tokens(kBatch), 128);
  const StepBudget strict(kModel, {.chunk_tokens = 128, .itl_target = milliseconds(1)});
  EXPECT_EQ(strict.Tokens({}), 128) << "nobody waits for a next token";
}

TEST(StepBudget, TakesAsManyBlocksAsTheTargetLeaves) {
  for (const int32_t blocks : {20, 33, 64}) {
    const StepBudget budget(kModel, {.chunk_tokens = 2048, .itl_target = TimeFor(16 * blocks)});
    EXPECT_EQ(budget.Tokens(kBatch), 16 * blocks);
  }
}

TEST(StepBudget, OneBlockIsComputedInAnyCase) {
  const StepBudget budget(kModel, {.chunk_tokens = 128, .itl_target = Seconds(1e-6)});
  EXPECT_EQ(budget.Tokens(kBatch), 16);
}

TEST(StepBudget, NoPromptsMeansNone) {
  const StepBudget budget(kModel, {.chunk_tokens = 0, .itl_target = milliseconds(1)});
  EXPECT_EQ(budget.Tokens(kBatch), 0);
  EXPECT_EQ(budget.TokensPerSecond(kBatch), 0.0);
}

// Steps that take thrice as long as predicted leave room for fewer; as they get faster again the
// room comes back, later than it went.
TEST(StepBudget, LearnsFromTheSlowestStepsOfLate) {
  StepBudget budget(kModel, {.chunk_tokens = 2048, .itl_target = TimeFor(1024)});
  const int32_t before = budget.Tokens(kBatch);
  EXPECT_EQ(before, 1024);
  const double rate = budget.TokensPerSecond(kBatch);
  roofline::StepRows rows = kBatch;
  rows.Add(1024, 0, true);
  const auto took = [&](double times) { budget.Took(rows, Seconds(times * Predicted(1024))); };
  took(3.0);
  const int32_t slow = budget.Tokens(kBatch);
  EXPECT_LT(slow, before / 2);
  EXPECT_LT(budget.TokensPerSecond(kBatch), rate / 2);
  took(1.0);
  EXPECT_LE(budget.Tokens(kBatch), slow + 32) << "one fast step proves little";
  for (int i = 0; i < 600; ++i) took(1.0);
  EXPECT_GE(budget.Tokens(kBatch), before - 16);
}

}  // namespace
}  // namespace setu::decode
