// SPDX-License-Identifier: Apache-2.0
// How long a step takes, from what it must do and what the machine can do:
//
//   seconds = max(bytes / bandwidth, operations / rate of our kernels)
//             + stall + fixed part * layers
//
//   SETU_ASSIGN_OR_RETURN(auto runner, ModelRunner::Load(...));
//   const StepModel model = MeasureStepModel(*runner);
//   model.Terms(DecodeRows(8, 512)).seconds()
//
// In all, layers, logits and attention take one after another what they were timed to take. Of what
// goes beyond reading and computing, as much as in a step of one row is the fixed part: handing
// work to threads, the small ops. The rest stalls: reading and computing that do not overlap, norms
// and activations of many rows.
#ifndef SETU_COMMON_ROOFLINE_STEP_MODEL_H_
#define SETU_COMMON_ROOFLINE_STEP_MODEL_H_

#include <algorithm>

#include "common/engine/model_runner.h"
#include "common/roofline/kernel_rates.h"
#include "common/roofline/peaks.h"
#include "common/roofline/step_work.h"

namespace setu::roofline {

// Predicted seconds of a step, or of several added up.
struct StepTerms {
  double memory = 0;   // moving its bytes at the peak
  double compute = 0;  // its operations by our kernels
  double fixed = 0;
  double stall = 0;  // where neither is at its rate

  double seconds() const { return std::max(memory, compute) + stall + fixed; }
  StepTerms& operator+=(const StepTerms& other);
  bool operator==(const StepTerms&) const = default;
};

struct StepModel {
  ModelShape shape;
  Peaks peaks;
  KernelRates rates;

  StepTerms Terms(const StepRows& rows) const;
  // What the hardware alone would take: no kernel of ours, no fixed part.
  double RoofSeconds(const StepRows& rows) const;
  // Seconds of a layer that are the fixed part, by the peaks as they are known now.
  double FixedPerLayer() const;

 private:
  // All that goes beyond reading and computing is a stall.
  StepTerms Unfixed(const StepRows& rows) const;
};

// At load, under the host's probe lock: about 0.6 s for a GiB of weights, with a small model some
// ten milliseconds.
StepModel MeasureStepModel(engine::ModelRunner& runner);

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_STEP_MODEL_H_
