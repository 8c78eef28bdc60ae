// SPDX-License-Identifier: Apache-2.0
// From a row of logits to an id, by rule 10 of the numeric paths (kernels/README.md): penalties,
// bias, temperature, top-k, top-p, min-p; Philox4x32-10 keyed by (seed; position, choice).
// Stateless: the same logits, params and ids give the same id on every worker, also after a resume.
//
//   Sampler sampler(vocabulary);            // scratch of one thread
//   SampledToken t = sampler.Sample(logits, params, {.ids = ids, .prompt_length = n}, choice);
//   EndReason end = EndOf(params, t.id, generated);
#ifndef SETU_COMMON_ENGINE_SAMPLER_H_
#define SETU_COMMON_ENGINE_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/engine/sampling_params.h"

namespace setu::engine {

struct SequenceIds {
  std::span<const TokenId> ids;  // prompt, then generated; all inside the vocabulary
  int32_t prompt_length = 0;
  int32_t generated() const { return static_cast<int32_t>(ids.size()) - prompt_length; }
};

class Sampler {
 public:
  explicit Sampler(int32_t vocabulary);
  // logits: [vocabulary], raw; not modified. Draws the id at position ids.size().
  // A NaN logit counts as -inf. Where every logit is -inf, the id is 0.
  SampledToken Sample(std::span<const float> logits, const SamplingParams& params,
                      const SequenceIds& sequence, uint32_t choice);

 private:
  // Each works on scores_, which starts as the raw logits.
  void Penalise(const SamplingParams& params, const SequenceIds& sequence);
  TokenId Likeliest() const;
  float LogNormaliser();
  float Floor(double wanted, float least) const;
  TokenId Draw(const SamplingParams& params, float uniform);
  // candidates_ = the `count` likeliest ids, as a heap with the least likely of them in front.
  void SelectLikeliest(int32_t count);

  std::vector<float> scores_;        // [vocabulary]
  std::vector<float> weights_;       // [vocabulary], e^score up to a factor
  std::vector<TokenId> candidates_;  // [<= vocabulary], capacity taken at construction
  std::vector<TokenId> selected_;    // [vocabulary], of a draw: the likely ones first
  std::vector<int32_t> counts_;      // [vocabulary], zero between calls
};

// Why the sequence ends with `id` as its `generated`-th generated token (1 is the first).
EndReason EndOf(const SamplingParams& params, TokenId id, int32_t generated);

// The first word of Philox4x32-10's block (position, choice) under key `seed`, as a float in
// [0, 1) of 24 bits.
float UniformAt(uint64_t seed, uint64_t position, uint32_t choice);

}  // namespace setu::engine

#endif  // SETU_COMMON_ENGINE_SAMPLER_H_
