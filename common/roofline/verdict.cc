// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/verdict.h"

#include <algorithm>

namespace setu::roofline {
namespace {

Limit LargestPart(const Window& window, bool prompts_wait) {
  const double idle = window.seconds - window.busy - window.waiting_link;
  const double most = std::max({idle, window.busy, window.waiting_link});
  if (window.busy < most || window.busy <= 0) {
    if (window.waiting_link == most && most > 0) return Limit::kLinkBound;
    return prompts_wait ? Limit::kStarved : Limit::kIdle;
  }
  return LimitOf(window.terms);
}

}  // namespace

const char* Name(Limit limit) {
  switch (limit) {
    case Limit::kIdle:
      return "idle";
    case Limit::kStarved:
      return "starved";
    case Limit::kLinkBound:
      return "link-bound";
    case Limit::kOverheadBound:
      return "overhead-bound";
    case Limit::kMemoryBound:
      return "memory-bound";
    case Limit::kComputeBound:
      return "compute-bound";
  }
  return "";
}

Limit LimitOf(const StepTerms& terms) {
  if (terms.fixed > terms.seconds() / 2) return Limit::kOverheadBound;
  return terms.memory >= terms.compute ? Limit::kMemoryBound : Limit::kComputeBound;
}

Verdict Judge(const Window& window, const Peaks& peaks, bool prompts_wait) {
  Verdict verdict = {.limit = LargestPart(window, prompts_wait)};
  if (window.busy <= 0 || window.work.bytes() <= 0) return verdict;
  verdict.bandwidth_share = window.work.bytes() / window.busy / peaks.bytes_per_second;
  verdict.arithmetic_share = window.work.operations() / window.busy / peaks.operations_per_second;
  verdict.intensity = window.work.operations() / window.work.bytes();
  return verdict;
}

}  // namespace setu::roofline
