// SPDX-License-Identifier: Apache-2.0
// One token for each sequence of a batch and chunks of prompts, in one pass through the model; and
// what that took.
//
//   Stepper stepper(runner, roofline::MeasureStepModel(runner), {.chunk_tokens = 128}, clock);
//   const int32_t tokens = stepper.PromptTokens(plan.batch);   // that chunks may have beside it
//   Stepper::Result result = stepper.Step(plan.batch, chunks);
#ifndef SETU_SERVICES_DECODE_STEPPER_H_
#define SETU_SERVICES_DECODE_STEPPER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/engine/runner.h"
#include "common/engine/sampler.h"
#include "common/roofline/meter.h"
#include "common/wire/convert.h"
#include "common/worker/busy_time.h"
#include "services/decode/sequence.h"
#include "services/decode/step_budget.h"

namespace setu::decode {

class Stepper {
 public:
  // Part of a request's prompt; its lease is the whole table.
  struct PromptChunk {
    Request* request = nullptr;
    int32_t start = 0;
    int32_t tokens = 0;
    bool last = false;
  };
  struct Result {
    std::span<const engine::SampledToken> tokens;                 // parallel to the batch
    std::span<const std::vector<wire::FirstToken>> first_tokens;  // of the last chunks, in order
  };

  // `runner` and `clock` must outlive this.
  Stepper(engine::Runner& runner, const roofline::StepModel& model,
          const StepBudget::Limits& limits, const Clock& clock);

  // After a wait, before anything else: what was before held up no step.
  void Woke() { free_since_ = clock_.Now(); }
  int32_t PromptTokens(std::span<Sequence* const> batch) const;
  // The table of each sequence covers its ids, of which the last one is computed now. Valid until
  // the next call.
  Result Step(std::span<Sequence* const> batch, std::span<const PromptChunk> chunks);

  uint64_t steps() const { return steps_; }
  uint64_t tokens() const { return tokens_; }
  worker::BusyTime::Reading busy() const { return busy_.Read(); }  // any thread
  Duration sampling() const { return sampling_; }                  // of what is busy
  // From a step's end, or a wait's, to the next step, summed.
  Duration between() const { return between_; }
  roofline::Meter& meter() { return meter_; }
  uint64_t prompt_tokens() const { return prompt_tokens_; }
  // Over the last steps; 0 before the first.
  double tokens_per_second() const;
  // Of prompts beside the last step's batch.
  double prompt_tokens_per_second() const { return budget_.TokensPerSecond(batch_rows_); }

 private:
  void Count(size_t batch, Duration time);

  engine::Runner& runner_;
  const Clock& clock_;
  worker::BusyTime busy_;
  roofline::Meter meter_;
  StepBudget budget_;
  engine::Sampler sampler_;
  std::vector<engine::StepEntry> entries_;
  std::vector<engine::SampledToken> sampled_;
  std::vector<std::vector<wire::FirstToken>> first_tokens_;
  roofline::StepRows batch_rows_;  // of the last step
  uint64_t steps_ = 0;
  uint64_t tokens_ = 0;
  uint64_t prompt_tokens_ = 0;
  TimePoint free_since_;
  Duration sampling_{}, between_{};
  double recent_tokens_ = 0.0, recent_seconds_ = 0.0;  // decayed per step
};

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_STEPPER_H_
