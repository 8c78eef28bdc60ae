// SPDX-License-Identifier: Apache-2.0
// How many tokens of prompts a step may compute beside its batch, so that those who wait for their
// next token wait no longer than the target. Predicted by the step model, and corrected by how long
// steps with prompts took against that: by the worst of late, for the target is about the slowest.
//
//   StepBudget budget(model, {.chunk_tokens = 128, .block_tokens = 16, .itl_target = 50ms});
//   const int32_t tokens = budget.Tokens(batch_rows);      // whole blocks, one at least
//   budget.Took(all_rows, took);                           // of a step with prompts
//
// One block is computed in any case: a prompt gets on, however little the batch leaves of the
// target.
#ifndef SETU_SERVICES_DECODE_STEP_BUDGET_H_
#define SETU_SERVICES_DECODE_STEP_BUDGET_H_

#include <cstdint>

#include "common/base/clock.h"
#include "common/roofline/step_model.h"

namespace setu::decode {

class StepBudget {
 public:
  struct Limits {
    int32_t chunk_tokens = 128;  // in any step; 0: no prompts
    int32_t block_tokens = 16;
    Duration itl_target{0};  // 0: none
  };
  StepBudget(const roofline::StepModel& model, const Limits& limits);

  int32_t Tokens(const roofline::StepRows& batch) const;
  void Took(const roofline::StepRows& rows, Duration took);
  // Of prompts, beside `batch`; 0 where there are none.
  double TokensPerSecond(const roofline::StepRows& batch) const;

 private:
  double Seconds(const roofline::StepRows& batch, int32_t tokens) const;

  const roofline::StepModel model_;
  const Limits limits_;
  double slowness_ = 1.0;  // measured over predicted, the worst of late
};

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_STEP_BUDGET_H_
