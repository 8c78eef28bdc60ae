// SPDX-License-Identifier: Apache-2.0
// What a prompt's last row of logits turns into: a token for each choice.
//
//   std::vector<wire::FirstToken> first = SampleFirstTokens(sampler, logits, sequence);
#ifndef SETU_COMMON_WORKER_FIRST_TOKENS_H_
#define SETU_COMMON_WORKER_FIRST_TOKENS_H_

#include <span>
#include <vector>

#include "common/engine/sampler.h"
#include "common/wire/convert.h"

namespace setu::worker {

// logits: [vocabulary], of the last of sequence.ids. Parallel to sequence.choices.
std::vector<wire::FirstToken> SampleFirstTokens(engine::Sampler& sampler,
                                                std::span<const float> logits,
                                                const wire::Sequence& sequence);

}  // namespace setu::worker

#endif  // SETU_COMMON_WORKER_FIRST_TOKENS_H_
