// SPDX-License-Identifier: Apache-2.0
// What would move the limit, in figures of the step model. Pure.
//
//   const Advice advice = Advise(model, {.context = 512, .batch = 8});
//   advice.ridge_batch                  // from here on a decode step computes longer than it reads
#ifndef SETU_COMMON_ROOFLINE_ADVICE_H_
#define SETU_COMMON_ROOFLINE_ADVICE_H_

#include <cstdint>
#include <optional>

#include "common/roofline/step_model.h"

namespace setu::roofline {

// What a decode worker is thought to do, and prompts and answers to be.
struct Load {
  int64_t batch = 8;
  int64_t context = 512;  // tokens that a sequence holds, on the average
  int64_t prompt = 512;
  int64_t answer = 128;
  int64_t chunk = 512;  // tokens of a prefill step
};

// Factors are of decode tokens/s at the load's batch: 1.8 is 80 % more. 1: nothing to gain.
struct Advice {
  std::optional<int64_t> ridge_batch;  // nullopt: memory stays the limit up to kMostBatch
  double int8_weights = 1;             // Q8_0: 8.5 bits a weight
  double int4_weights = 1;             // Q4_0: 4.5 bits a weight
  double int8_kv = 1;                  // 8.5 bits a value of K and V, in heads of 64
  double prefill_per_decode = 0;       // prefill workers that keep one decode worker busy
};

inline constexpr int64_t kMostBatch = 1024;

Advice Advise(const StepModel& model, const Load& load);

// Tokens/s of a decode worker at a batch, and of a prefill worker whose prompts are that long.
double DecodeRate(const StepModel& model, int64_t batch, int64_t context);
double PrefillRate(const StepModel& model, int64_t prompt, int64_t chunk);

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_ADVICE_H_
