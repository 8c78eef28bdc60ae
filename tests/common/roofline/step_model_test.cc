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
  EXPECT_DOUBLE_EQ(terms.fixed, 16 * 20e-6);
  EXPECT_DOUBLE_EQ(terms.seconds(), std::max(terms.memory, terms.compute) + terms.fixed);
}

// Weights that come from memory slow a product down; attention follows the products.
TEST(StepModel, StallsWhereReadingAndComputingDoNotOverlap) {
  StepModel model = BillionModel();
  const StepRows rows = DecodeRows(4, 99);
  const double without = model.Terms(rows).seconds();
  SecondsByRows& streamed = model.rates.products.front().streamed;
  for (double& seconds : streamed) seconds = 100e-12;
  EXPECT_NEAR(model.Terms(rows).seconds() - without,
              model.rates.StreamedSeconds(model.shape, rows) -
                  WorkOf(model.shape, rows).weight_bytes / 20e9,
              1e-12);
  model.rates.attention_single = 1 / 5e9;
  const StepTerms terms = model.Terms(rows);
  EXPECT_NEAR(terms.seconds() - terms.fixed,
              model.rates.StreamedSeconds(model.shape, rows) +
                  WorkOf(model.shape, rows).attention_operations / 5e9,
              1e-12);
}

TEST(StepModel, OfTheRoofKnowsNoKernels) {
  const StepModel model = BillionModel();
  const StepRows one = DecodeRows(1, 99), many = DecodeRows(512, 99);
  EXPECT_DOUBLE_EQ(model.RoofSeconds(one), WorkOf(model.shape, one).bytes() / 20e9);
  EXPECT_DOUBLE_EQ(model.RoofSeconds(many), WorkOf(model.shape, many).operations() / 1e12);
  EXPECT_LT(model.RoofSeconds(one), model.Terms(one).seconds());
}

// Every type that the model has is timed; what is measured is positive and leaves the pool free.
TEST(StepModel, IsMeasuredOnALoadedModel) {
  for (const auto type : {kernels::WeightType::kF32, kernels::WeightType::kQ8_0}) {
    const test::TempDir dir;
    auto runner = engine::ModelRunner::Load(
        {.model_path = test::WriteTinyModel(dir, {.weights = type, .tied = false}),
         .cpu = {.threads = 1},
         .kv_memory_bytes = 1 << 20},
        nullptr);
    ASSERT_TRUE(runner.ok()) << runner.status();
    const StepModel model = MeasureStepModel(**runner);
    EXPECT_EQ(model.rates.products.size(), model.shape.formats.size());
    const StepTerms terms = model.Terms(DecodeRows(1, 16));
    EXPECT_GT(terms.memory, 0);
    EXPECT_GT(terms.compute, 0);
    EXPECT_GE(terms.fixed, 0);
    EXPECT_GT(model.Terms(DecodeRows(64, 16)).compute, terms.compute);
    EXPECT_EQ((*runner)->pool().held(), 0);
  }
}

}  // namespace
}  // namespace setu::roofline
