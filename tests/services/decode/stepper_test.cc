// SPDX-License-Identifier: Apache-2.0
#include "services/decode/stepper.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "services/decode/request.h"
#include "tests/common/roofline/model_fixture.h"
#include "tests/services/decode/fake_prefill.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu::decode {
namespace {

// A millisecond passes between two looks.
class TickingClock final : public Clock {
 public:
  TimePoint Now() const override { return now_ += std::chrono::milliseconds(1); }

 private:
  mutable TimePoint now_{};
};

class StepperTest : public ::testing::Test {
 protected:
  StepperTest() {
    request_.sequence = Prompt("u", 40, 8);
    request_.lease = *runner_->pool().Take(3);
  }

  const test::TempDir dir_;
  const std::unique_ptr<engine::ModelRunner> runner_ = LoadTiny(test::WriteTinyModel(dir_), 16);
  Request request_;
  const Stepper::PromptChunk chunk_{.request = &request_, .start = 0, .tokens = 16};
};

// Routers take it for the speed of answers.
TEST_F(StepperTest, PromptsAloneDoNotChangeTheRateOfAnswers) {
  const TickingClock clock;
  Stepper stepper(*runner_, roofline::BillionModel(), {.chunk_tokens = 16}, clock);
  Sequence sequence;
  sequence.request = &request_;
  sequence.ids = request_.sequence.ids;
  sequence.lease = runner_->pool().Share(request_.lease.blocks());
  Sequence* const batch[] = {&sequence};
  stepper.Step(batch, {});
  const double rate = stepper.tokens_per_second();
  EXPECT_GT(rate, 0.0);
  for (int i = 0; i < 20; ++i) stepper.Step({}, {&chunk_, 1});
  EXPECT_EQ(stepper.tokens_per_second(), rate);
  EXPECT_EQ(stepper.prompt_tokens(), 320u);
  EXPECT_EQ(stepper.steps(), 21u);
}

TEST_F(StepperTest, WhatHoldsAStepUpIsBetweenAndAWaitIsNot) {
  testing::FakeClock clock;
  Stepper stepper(*runner_, roofline::BillionModel(), {.chunk_tokens = 16}, clock);
  clock.Advance(std::chrono::seconds(60));
  stepper.Woke();
  clock.Advance(std::chrono::seconds(1));
  stepper.Step({}, {&chunk_, 1});
  clock.Advance(std::chrono::seconds(2));
  stepper.Step({}, {&chunk_, 1});
  EXPECT_EQ(stepper.between(), std::chrono::seconds(3));
  clock.Advance(std::chrono::seconds(60));
  stepper.Woke();
  stepper.Step({}, {&chunk_, 1});
  EXPECT_EQ(stepper.between(), std::chrono::seconds(3));
}

TEST_F(StepperTest, SamplingIsPartOfWhatIsBusy) {
  const TickingClock clock;
  Stepper stepper(*runner_, roofline::BillionModel(), {.chunk_tokens = 16}, clock);
  stepper.Step({}, {&chunk_, 1});
  EXPECT_GT(stepper.sampling(), Duration::zero());
  EXPECT_LT(stepper.sampling(), stepper.busy().busy);
}

}  // namespace
}  // namespace setu::decode
