// SPDX-License-Identifier: Apache-2.0
// A request's sampling with every default filled in, and what a sampled token carries.
#ifndef SETU_COMMON_ENGINE_SAMPLING_PARAMS_H_
#define SETU_COMMON_ENGINE_SAMPLING_PARAMS_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace setu::engine {

using TokenId = int32_t;

struct SamplingParams {
  int32_t max_tokens = 16;
  int32_t min_tokens = 0;
  float temperature = 1.0f;  // below 1e-5: greedy
  int32_t top_k = 0;         // 0: all
  float top_p = 1.0f;
  float min_p = 0.0f;
  uint64_t seed = 0;
  float repetition_penalty = 1.0f;
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  std::vector<std::pair<TokenId, float>> logit_bias;  // ascending ids
  std::vector<TokenId> end_ids;                       // ascending
  bool want_logprobs = false;
  int32_t top_logprobs = 0;
};

struct TopToken {
  TokenId id = 0;
  float logprob = 0.0f;
  bool operator==(const TopToken&) const = default;
};

struct SampledToken {
  TokenId id = 0;
  float logprob = 0.0f;       // 0 unless want_logprobs
  std::vector<TopToken> top;  // likeliest first, ties to the lowest id
  bool operator==(const SampledToken&) const = default;
};

enum class EndReason : uint8_t { kNone, kEndId, kMaxTokens };

}  // namespace setu::engine

#endif  // SETU_COMMON_ENGINE_SAMPLING_PARAMS_H_
