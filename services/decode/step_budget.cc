// SPDX-License-Identifier: Apache-2.0
#include "services/decode/step_budget.h"

#include <algorithm>

namespace setu::decode {
namespace {

double SecondsOf(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

StepBudget::StepBudget(const roofline::StepModel& model, const Limits& limits)
    : model_(model), limits_(limits) {}

int32_t StepBudget::Tokens(const roofline::StepRows& batch) const {
  if (limits_.itl_target == Duration::zero() || batch.sequences == 0) return limits_.chunk_tokens;
  const int32_t most = limits_.chunk_tokens / limits_.block_tokens;
  int32_t blocks = std::min(most, 1);
  while (blocks < most &&
         Seconds(batch, (blocks + 1) * limits_.block_tokens) <= SecondsOf(limits_.itl_target)) {
    ++blocks;
  }
  return blocks * limits_.block_tokens;
}

void StepBudget::Took(const roofline::StepRows& rows, Duration took) {
  constexpr double kKept = 0.98;  // of the worst, per step: some fifty steps count
  const double slowness = SecondsOf(took) / model_.Terms(rows).seconds();
  slowness_ = std::max(slowness, kKept * slowness_ + (1 - kKept) * slowness);
}

double StepBudget::TokensPerSecond(const roofline::StepRows& batch) const {
  const int32_t tokens = Tokens(batch);
  return tokens == 0 ? 0.0 : tokens / Seconds(batch, tokens);
}

double StepBudget::Seconds(const roofline::StepRows& batch, int32_t tokens) const {
  roofline::StepRows rows = batch;
  rows.Add(tokens, 0, /*wants_logits=*/true);
  return slowness_ * model_.Terms(rows).seconds();
}

}  // namespace setu::decode
