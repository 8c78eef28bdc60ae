// SPDX-License-Identifier: Apache-2.0
#include "common/worker/first_tokens.h"

#include <utility>

namespace setu::worker {

std::vector<wire::FirstToken> SampleFirstTokens(engine::Sampler& sampler,
                                                std::span<const float> logits,
                                                const wire::Sequence& sequence) {
  const engine::SequenceIds ids = {sequence.ids, sequence.prompt_length};
  std::vector<wire::FirstToken> first_tokens;
  for (const uint32_t choice : sequence.choices) {
    engine::SampledToken token = sampler.Sample(logits, sequence.sampling, ids, choice);
    const engine::EndReason end = EndOf(sequence.sampling, token.id, ids.generated() + 1);
    first_tokens.push_back({choice, std::move(token), end});
  }
  return first_tokens;
}

}  // namespace setu::worker
