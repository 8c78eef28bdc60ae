// SPDX-License-Identifier: Apache-2.0
#include "services/decode/stepper.h"

#include "services/decode/request.h"

namespace setu::decode {

Stepper::Stepper(engine::ModelRunner& runner, const roofline::StepModel& model, const Clock& clock)
    : runner_(runner),
      busy_(clock),
      meter_(model, clock.Now()),
      sampler_(runner.config().vocabulary) {}

std::span<const engine::SampledToken> Stepper::Step(std::span<Sequence* const> batch) {
  entries_.clear();
  roofline::StepRows rows;
  for (const Sequence* sequence : batch) {
    entries_.push_back({.ids = std::span(sequence->ids).last(1),
                        .start = static_cast<int32_t>(sequence->ids.size()) - 1,
                        .blocks = sequence->lease.blocks(),
                        .want_logits = true});
    rows.Add(1, entries_.back().start, true);
  }
  busy_.Begin();
  const kernels::ConstMatrix logits = runner_.Step(entries_);
  sampled_.clear();
  for (size_t row = 0; row < batch.size(); ++row) {
    const wire::Sequence& state = batch[row]->request->sequence;
    sampled_.push_back(sampler_.Sample({logits.Row(row), static_cast<size_t>(logits.cols)},
                                       state.sampling, {batch[row]->ids, state.prompt_length},
                                       batch[row]->choice));
  }
  const Duration took = busy_.End();
  meter_.CountStep(rows, took);
  Count(batch.size(), took);
  return sampled_;
}

double Stepper::tokens_per_second() const {
  return recent_seconds_ > 0.0 ? recent_tokens_ / recent_seconds_ : 0.0;
}

void Stepper::Count(size_t batch, Duration time) {
  constexpr double kKept = 0.95;  // of the past, per step: some twenty steps count
  const double seconds = std::chrono::duration<double>(time).count();
  ++steps_;
  tokens_ += batch;
  recent_tokens_ = recent_tokens_ * kKept + static_cast<double>(batch);
  recent_seconds_ = recent_seconds_ * kKept + seconds;
}

}  // namespace setu::decode
