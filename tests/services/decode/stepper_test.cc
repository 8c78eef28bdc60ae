// SPDX-License-Identifier: Apache-2.0
#include "services/decode/stepper.h"

#include <gtest/gtest.h>

#include <chrono>

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

// Routers take it for the speed of answers.
TEST(Stepper, PromptsAloneDoNotChangeTheRateOfAnswers) {
  test::TempDir dir;
  const auto runner = LoadTiny(test::WriteTinyModel(dir), 16);
  const TickingClock clock;
  Stepper stepper(*runner, roofline::BillionModel(), {.chunk_tokens = 16}, clock);
  Request request;
  request.sequence = Prompt("u", 40, 8);
  request.lease = *runner->pool().Take(3);
  Sequence sequence;
  sequence.request = &request;
  sequence.ids = request.sequence.ids;
  sequence.lease = runner->pool().Share(request.lease.blocks());
  Sequence* const batch[] = {&sequence};
  stepper.Step(batch, {});
  const double rate = stepper.tokens_per_second();
  EXPECT_GT(rate, 0.0);
  const Stepper::PromptChunk chunk{.request = &request, .start = 0, .tokens = 16};
  for (int i = 0; i < 20; ++i) stepper.Step({}, {&chunk, 1});
  EXPECT_EQ(stepper.tokens_per_second(), rate);
  EXPECT_EQ(stepper.prompt_tokens(), 320u);
  EXPECT_EQ(stepper.steps(), 21u);
}

TEST(Stepper, WhatHoldsAStepUpIsBetweenAndAWaitIsNot) {
  test::TempDir dir;
  const auto runner = LoadTiny(test::WriteTinyModel(dir), 16);
  testing::FakeClock clock;
  Stepper stepper(*runner, roofline::BillionModel(), {.chunk_tokens = 16}, clock);
  Request request;
  request.sequence = Prompt("u", 40, 8);
  request.lease = *runner->pool().Take(3);
  const Stepper::PromptChunk chunk{.request = &request, .start = 0, .tokens = 16};
  clock.Advance(std::chrono::seconds(60));
  stepper.Woke();
  clock.Advance(std::chrono::seconds(1));
  stepper.Step({}, {&chunk, 1});
  clock.Advance(std::chrono::seconds(2));
  stepper.Step({}, {&chunk, 1});
  EXPECT_EQ(stepper.between(), std::chrono::seconds(3));
  clock.Advance(std::chrono::seconds(60));
  stepper.Woke();
  stepper.Step({}, {&chunk, 1});
  EXPECT_EQ(stepper.between(), std::chrono::seconds(3));
}

TEST(Stepper, SamplingIsPartOfWhatIsBusy) {
  test::TempDir dir;
  const auto runner = LoadTiny(test::WriteTinyModel(dir), 16);
  const TickingClock clock;
  Stepper stepper(*runner, roofline::BillionModel(), {.chunk_tokens = 16}, clock);
  Request request;
  request.sequence = Prompt("u", 40, 8);
  request.lease = *runner->pool().Take(3);
  const Stepper::PromptChunk chunk{.request = &request, .start = 0, .tokens = 16};
  stepper.Step({}, {&chunk, 1});
  EXPECT_GT(stepper.sampling(), Duration::zero());
  EXPECT_LT(stepper.sampling(), stepper.busy().busy);
}

}  // namespace
}  // namespace setu::decode
