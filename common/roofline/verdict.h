// SPDX-License-Identifier: Apache-2.0
// Which limit holds a worker back, out of what its steps were predicted and seen to take. Pure.
//
//   const Window window = ...;      // between two looks
//   const Verdict verdict = Judge(window, peaks, /*prompts_wait=*/false);
//   Name(verdict.limit)                    // "memory-bound"
#ifndef SETU_COMMON_ROOFLINE_VERDICT_H_
#define SETU_COMMON_ROOFLINE_VERDICT_H_

#include <array>
#include <cstdint>

#include "common/roofline/peaks.h"
#include "common/roofline/step_model.h"
#include "common/roofline/step_work.h"

namespace setu::roofline {

enum class Limit : uint8_t {
  kIdle,           // nothing to do, here or elsewhere
  kStarved,        // nothing to do here, while prompts wait elsewhere
  kLinkBound,      // computed KV waits to be sent
  kOverheadBound,  // the fixed part of a step is over half of it
  kMemoryBound,
  kComputeBound,
};
inline constexpr std::array kLimits = {Limit::kIdle,        Limit::kStarved,
                                       Limit::kLinkBound,   Limit::kOverheadBound,
                                       Limit::kMemoryBound, Limit::kComputeBound};
const char* Name(Limit limit);  // "compute-bound"

// What passed between two looks at a worker. Seconds; those of `terms` are of all its steps.
struct Window {
  double seconds = 0;
  double busy = 0;          // inside steps
  double waiting_link = 0;  // outside them, with computed KV under way
  StepTerms terms;
  StepWork work;
};

struct Verdict {
  Limit limit = Limit::kIdle;
  double bandwidth_share = 0;   // of the peak, while in steps
  double arithmetic_share = 0;  // likewise
  double intensity = 0;         // operations per byte; 0: no step
};

// What holds a step: the larger of its terms, or the fixed part where that is over half.
Limit LimitOf(const StepTerms& terms);

// The largest part of the window: idle time (starved where prompts wait for this worker elsewhere),
// the link, or steps, and of steps what held them.
Verdict Judge(const Window& window, const Peaks& peaks, bool prompts_wait);

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_VERDICT_H_
