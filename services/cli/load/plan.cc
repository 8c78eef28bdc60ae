// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/plan.h"

namespace setu::cli {

Seeds SeedsOf(uint64_t seed, uint32_t round, uint32_t side, uint32_t workload) {
  const auto mix = [&](uint32_t a, uint32_t b) {
    return Draws(seed, DrawsOf::kSeeds, (uint64_t{a} << 32) | b).Next();
  };
  return {.shape = mix(round, workload), .content = mix(round, (1 + side) << 16 | workload)};
}

PlannedRequest Plan::Request(int64_t index) const {
  const auto i = static_cast<uint64_t>(index);
  Draws draws(seeds_.shape, DrawsOf::kShape, i);
  PlannedRequest request{};
  request.prompt_tokens = workload_.prompt_tokens.Draw(draws);
  request.max_tokens = workload_.max_tokens.Draw(draws);
  if (const auto* trace = std::get_if<Trace>(&workload_.arrivals)) {
    request.prompt_tokens = (*trace->requests)[i].prompt_tokens;
    request.max_tokens = (*trace->requests)[i].max_tokens;
  }
  if (workload_.prefixes) {
    request.prefix =
        static_cast<int32_t>(draws.Below(static_cast<uint64_t>(workload_.prefixes->count)));
  }
  if (workload_.cancels && draws.Unit() < workload_.cancels->share) {
    request.cancel_after = workload_.cancels->after.Draw(draws);
  }
  return request;
}

std::vector<uint32_t> Plan::Prompt(int64_t index, const PlannedRequest& request,
                                   std::span<const uint32_t> vocabulary) const {
  std::vector<uint32_t> ids;
  const auto draw = [&](DrawsOf purpose, uint64_t of, int32_t tokens) {
    Draws draws(seeds_.content, purpose, of);
    for (int32_t t = 0; t < tokens; ++t) ids.push_back(vocabulary[draws.Below(vocabulary.size())]);
  };
  if (request.prefix) {
    draw(DrawsOf::kPrefix, static_cast<uint64_t>(*request.prefix), workload_.prefixes->tokens);
  }
  draw(DrawsOf::kTail, static_cast<uint64_t>(index), request.prompt_tokens);
  return ids;
}

}  // namespace setu::cli
