// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/step_model.h"

#include <gtest/gtest.h>

#include "tests/common/roofline/model_fixture.h"
#include "tests/support/tiny_model.h"

namespace setu::roofline {
namespace {

TEST(StepModel, IsTheLongerOfReadingAndComputingAndAFixedPart) {
  const StepModel model = BillionModel();
  const StepRows rows = DecodeRows(4, 99);
  const StepWork work = WorkOf(model.shape, rows);
  const StepTerms terms = model.Terms(rows);
  EXPECT_DOUBLE_EQ(terms.memory, work.bytes() / 20e9);
  EXPECT_DOUBLE_EQ(terms.compute,
                   work.product_operations / 400e9 + work.attention_operations / 200e9);
  EXPECT_NEAR(terms.fixed, 16 * 20e-6, 1e-9);
  EXPECT_NEAR(terms.stall, 0, 1e-9);
  EXPECT_DOUBLE_EQ(terms.seconds(),
                   std::max(terms.memory, terms.compute) + terms.stall + terms.fixed);
}

// A probe that was disturbed read too slowly: what seemed to be reading was the fixed part.
TEST(StepModel, FindsTheFixedPartAnewWhereAPeakRises) {
  StepModel model = BillionModel();
  model.peaks.bytes_per_second = 19e9;
  const StepRows rows = DecodeRows(1, 0);
  const StepTerms before = model.Terms(rows);
  EXPECT_NEAR(before.fixed, 0, 1e-9);
  model.peaks.Raise({.bytes_per_second = 20e9});
  const StepTerms after = model.Terms(rows);
  EXPECT_NEAR(after.fixed, 16 * 20e-6, 1e-9);
  EXPECT_NEAR(after.stall, 0, 1e-9);
}

// What a layer takes beyond reading and computing is no term of its own, and is not forgotten:
// norms, activations, weights that come from memory while nothing is computed.
TEST(StepModel, StallsWhereALayerPassesSlowerThanItReadsOrComputes) {
  StepModel model = BillionModel();
  const StepRows rows = DecodeRows(4, 99);
  const double without = model.Terms(rows).seconds();
  for (double& seconds : model.rates.layer) seconds = 10e-3;
  const StepWork work = WorkOf(model.shape, rows);
  const double others = work.bytes() - static_cast<double>(model.shape.layer_bytes);
  EXPECT_NEAR(model.Terms(rows).seconds(), 16 * 10e-3 + others / 20e9, 1e-9);
  EXPECT_GT(model.Terms(rows).seconds(), without);
  EXPECT_EQ(model.Terms(rows).compute, BillionModel().Terms(rows).compute);
}

// Each sequence costs something, however few keys it sees; attention comes after products.
TEST(StepModel, CountsAttentionByRowsAndByKeys) {
  StepModel model = BillionModel();
  model.rates.single = {.row = 1e-3, .key = 1e-6};
  const StepRows rows = DecodeRows(4, 99);
  const double attended = 16 * (4 * 1e-3 + 400 * 1e-6);
  const double read = (model.shape.layer_bytes + model.shape.logit_bytes) / 20e9;
  EXPECT_NEAR(model.Terms(rows).seconds(), read + attended + 16 * 20e-6, 1e-9);
}

TEST(StepModel, OfTheRoofKnowsNoKernels) {
  const StepModel model = BillionModel();
  const StepRows one = DecodeRows(1, 99), many = DecodeRows(512, 99);
  EXPECT_DOUBLE_EQ(model.RoofSeconds(one), WorkOf(model.shape, one).bytes() / 20e9);
  EXPECT_DOUBLE_EQ(model.RoofSeconds(many), WorkOf(model.shape, many).operations() / 1e12);
  EXPECT_LT(model.RoofSeconds(one), model.Terms(one).seconds());
}

// One row is predicted as it passes; what is neither reading nor computing is the fixed part.
TEST(StepModel, IsMeasuredOnALoadedModel) {
  const test::TempDir dir;
  auto runner = engine::ModelRunner::Load(
      {.model_path = test::WriteTinyModel(dir, {.weights = kernels::WeightType::kQ8_0}),
       .cpu = {.threads = 1},
       .kv_memory_bytes = 1 << 20},
      nullptr);
  ASSERT_TRUE(runner.ok()) << runner.status();
  const StepModel model = MeasureStepModel(**runner);
  const StepTerms one = model.Terms(DecodeRows(1, 0));
  EXPECT_GT(one.memory, 0);
  EXPECT_GT(one.compute, 0);
  EXPECT_GE(one.fixed, 0);
  EXPECT_NEAR(one.stall, 0, 1e-9);
  EXPECT_GT(model.Terms(DecodeRows(64, 0)).seconds(), one.seconds());
}

}  // namespace
}  // namespace setu::roofline
