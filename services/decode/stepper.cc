// SPDX-License-Identifier: Apache-2.0
#include "services/decode/stepper.h"

#include <algorithm>

#include "common/worker/first_tokens.h"
#include "services/decode/request.h"

namespace setu::decode {

namespace {

roofline::StepRows RowsOf(std::span<Sequence* const> batch) {
  roofline::StepRows rows;
  for (const Sequence* sequence : batch) rows.Add(1, std::ssize(sequence->ids) - 1, true);
  return rows;
}

}  // namespace

Stepper::Stepper(engine::Runner& runner, const roofline::StepModel& model,
                 const StepBudget::Limits& limits, const Clock& clock)
    : runner_(runner),
      clock_(clock),
      busy_(clock),
      meter_(model, clock.Now()),
      budget_(model, limits),
      sampler_(runner.config().vocabulary),
      free_since_(clock.Now()) {}

int32_t Stepper::PromptTokens(std::span<Sequence* const> batch) const {
  const auto rows_left = runner_.options().max_rows - static_cast<int32_t>(batch.size());
  return std::min(budget_.Tokens(RowsOf(batch)), rows_left);
}

Stepper::Result Stepper::Step(std::span<Sequence* const> batch,
                              std::span<const PromptChunk> chunks) {
  entries_.clear();
  for (const Sequence* sequence : batch) {
    entries_.push_back({.ids = std::span(sequence->ids).last(1),
                        .start = static_cast<int32_t>(sequence->ids.size()) - 1,
                        .blocks = sequence->lease.blocks(),
                        .want_logits = true});
  }
  roofline::StepRows rows = batch_rows_ = RowsOf(batch);
  for (const PromptChunk& chunk : chunks) {
    const std::span<const engine::TokenId> ids = chunk.request->sequence.ids;
    entries_.push_back({.ids = ids.subspan(chunk.start, chunk.tokens),
                        .start = chunk.start,
                        .blocks = chunk.request->lease.blocks(),
                        .want_logits = chunk.last});
    rows.Add(chunk.tokens, chunk.start, chunk.last);
    prompt_tokens_ += chunk.tokens;
  }
  between_ += clock_.Now() - free_since_;
  busy_.Begin();
  const kernels::ConstMatrix logits = runner_.Step(entries_);
  const TimePoint computed = clock_.Now();
  int64_t row = 0;
  const auto next_row = [&] {
    return std::span(logits.Row(row++), static_cast<size_t>(logits.cols));
  };
  sampled_.clear();
  for (const Sequence* sequence : batch) {
    const wire::Sequence& state = sequence->request->sequence;
    sampled_.push_back(sampler_.Sample(next_row(), state.sampling,
                                       {sequence->ids, state.prompt_length}, sequence->choice));
  }
  first_tokens_.clear();
  for (const PromptChunk& chunk : chunks) {
    if (!chunk.last) continue;
    first_tokens_.push_back(
        worker::SampleFirstTokens(sampler_, next_row(), chunk.request->sequence));
  }
  sampling_ += clock_.Now() - computed;
  const Duration took = busy_.End();
  free_since_ = clock_.Now();
  meter_.CountStep(rows, took);
  if (!chunks.empty()) budget_.Took(rows, took);
  Count(batch.size(), took);
  return {sampled_, first_tokens_};
}

double Stepper::tokens_per_second() const {
  return recent_seconds_ > 0.0 ? recent_tokens_ / recent_seconds_ : 0.0;
}

void Stepper::Count(size_t batch, Duration time) {
  constexpr double kKept = 0.95;  // of the past, per step: some twenty steps count
  const double seconds = std::chrono::duration<double>(time).count();
  ++steps_;
  tokens_ += batch;
  if (batch == 0) return;  // prompts alone say nothing of how fast answers come
  recent_tokens_ = recent_tokens_ * kKept + static_cast<double>(batch);
  recent_seconds_ = recent_seconds_ * kKept + seconds;
}

}  // namespace setu::decode
