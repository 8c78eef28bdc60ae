// SPDX-License-Identifier: Apache-2.0
// One token for each sequence of a batch, in one pass through the model; and what that took.
//
//   Stepper stepper(runner, roofline::MeasureStepModel(runner), clock);
//   std::span<const engine::SampledToken> tokens = stepper.Step(plan.batch);   // parallel to it
#ifndef SETU_SERVICES_DECODE_STEPPER_H_
#define SETU_SERVICES_DECODE_STEPPER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/engine/model_runner.h"
#include "common/engine/sampler.h"
#include "common/roofline/meter.h"
#include "common/worker/busy_time.h"
#include "services/decode/sequence.h"

namespace setu::decode {

class Stepper {
 public:
  // `runner` and `clock` must outlive this.
  Stepper(engine::ModelRunner& runner, const roofline::StepModel& model, const Clock& clock);

  // The table of each sequence covers its ids, of which the last one is computed now. Valid until
  // the next call.
  std::span<const engine::SampledToken> Step(std::span<Sequence* const> batch);

  uint64_t steps() const { return steps_; }
  uint64_t tokens() const { return tokens_; }
  worker::BusyTime::Reading busy() const { return busy_.Read(); }  // any thread
  roofline::Meter& meter() { return meter_; }
  // Over the last steps; 0 before the first.
  double tokens_per_second() const;

 private:
  void Count(size_t batch, Duration time);

  engine::ModelRunner& runner_;
  worker::BusyTime busy_;
  roofline::Meter meter_;
  engine::Sampler sampler_;
  std::vector<engine::StepEntry> entries_;
  std::vector<engine::SampledToken> sampled_;
  uint64_t steps_ = 0;
  uint64_t tokens_ = 0;
  double recent_tokens_ = 0.0, recent_seconds_ = 0.0;  // decayed per step
};

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_STEPPER_H_
