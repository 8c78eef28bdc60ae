// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/advice.h"

#include <gtest/gtest.h>

#include "tests/common/roofline/model_fixture.h"

namespace setu::roofline {
namespace {

TEST(Advice, OfTheRidgeIsTheFirstBatchThatComputesLonger) {
  const StepModel model = BillionModel();
  const auto ridge = Advise(model, {.context = 64}).ridge_batch;
  ASSERT_TRUE(ridge.has_value());
  ASSERT_GT(*ridge, 1);
  const StepTerms before = model.Terms(DecodeRows(*ridge - 1, 64));
  const StepTerms at = model.Terms(DecodeRows(*ridge, 64));
  EXPECT_LT(before.compute, before.memory);
  EXPECT_GE(at.compute, at.memory);
}

TEST(Advice, KnowsNoRidgeWhereReadingAlwaysTakesLonger) {
  StepModel model = BillionModel();
  model.rates.products.front().per_value = {};
  model.rates.single = {};
  EXPECT_EQ(Advise(model, {}).ridge_batch, std::nullopt);
}

// At batch 1 a step reads weights and little else: half the bytes are near twice the speed.
TEST(Advice, OfSmallerWeightsIsWhatTheModelThenPredicts) {
  StepModel model = BillionModel();
  const Load load = {.batch = 1, .context = 16};
  const Advice advice = Advise(model, load);
  EXPECT_DOUBLE_EQ(advice.int8_weights, 1) << "they are that already";
  const double before = DecodeRate(model, 1, 16), fixed = model.FixedPerLayer();
  model.shape.layer_bytes = model.shape.layer_bytes / 34 * 18;
  model.shape.logit_bytes = model.shape.logit_bytes / 34 * 18;
  model.rates.layer[0] = static_cast<double>(model.shape.layer_bytes) / 16 / 20e9 + fixed;
  EXPECT_NEAR(advice.int4_weights, DecodeRate(model, 1, 16) / before, 1e-3);
  EXPECT_GT(advice.int4_weights, 1.5);
}

TEST(Advice, OfSmallerWeightsKnowsWhatTheyTakeToCompute) {
  StepModel model = BillionModel();
  const Load load = {.batch = 8, .context = 16};
  EXPECT_GT(Advise(model, load).int4_weights, 1.3);
  for (double& seconds : model.rates.products.back().per_value) seconds *= 2;
  EXPECT_DOUBLE_EQ(Advise(model, load).int4_weights, 1);
}

TEST(Advice, OfSmallerKvCountsWhereTheContextIsLong) {
  const StepModel model = BillionModel();
  const double of_short = Advise(model, {.batch = 4, .context = 16}).int8_kv;
  const double of_long = Advise(model, {.batch = 4, .context = 16384}).int8_kv;
  EXPECT_GT(of_short, 1);
  EXPECT_LT(of_short, 1.02);
  EXPECT_GT(of_long, 1.05);
}

TEST(Advice, OfSmallerBytesIsNothingWhereComputingIsTheLimit) {
  EXPECT_DOUBLE_EQ(Advise(BillionModel(), {.batch = 512, .context = 16}).int4_weights, 1);
}

// As many prompts computed as answers written, in the same time.
TEST(Advice, OfWorkersMatchesTheirRates) {
  const StepModel model = BillionModel();
  const Load load = {.batch = 8, .context = 512, .prompt = 700, .answer = 100, .chunk = 512};
  const double prompts = Advise(model, load).prefill_per_decode *
                         PrefillRate(model, load.prompt, load.chunk) / load.prompt;
  EXPECT_NEAR(prompts, DecodeRate(model, load.batch, load.context) / load.answer, 1e-9);
}

TEST(Rates, AreTokensOverPredictedSeconds) {
  const StepModel model = BillionModel();
  EXPECT_DOUBLE_EQ(DecodeRate(model, 4, 99), 4 / model.Terms(DecodeRows(4, 99)).seconds());
  StepRows first, last;
  first.Add(512, 0, false);
  last.Add(188, 512, true);
  EXPECT_DOUBLE_EQ(PrefillRate(model, 700, 512),
                   700 / (model.Terms(first).seconds() + model.Terms(last).seconds()));
}

}  // namespace
}  // namespace setu::roofline
