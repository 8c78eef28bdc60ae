// SPDX-License-Identifier: Apache-2.0
#include "common/engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/base/check.h"
#include "common/engine/philox.h"
#include "kernels/math.h"

namespace setu::engine {
namespace {

constexpr float kGreedyTemperature = 1e-5f;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

// NaN becomes -inf and +inf the largest float: scores have an order, and differences a value.
// std::max keeps its first argument where a comparison with NaN is false.
float Ordered(float logit) { return std::max(kMinusInfinity, std::min(logit, kLargest)); }

// The one order of all choices: higher score first, ties to the lowest id.
struct Likelier {
  const float* scores;
  bool operator()(TokenId a, TokenId b) const {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  }
};

// 16 partial sums, by id modulo 16, joined by one fixed tree: any vector width gives these bits.
class RowSum {
 public:
  void Add(size_t id, float value) { lanes_[id % 16] += value; }
  double Total() const {
    std::array<double, 16> sums = lanes_;
    for (int width = 8; width > 0; width /= 2) {
      for (int lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
    }
    return sums[0];
  }

 private:
  std::array<double, 16> lanes_ = {};
};

}  // namespace

Sampler::Sampler(int32_t vocabulary)
    : scores_(vocabulary), weights_(vocabulary), counts_(vocabulary, 0) {
  candidates_.reserve(vocabulary);
}

SampledToken Sampler::Sample(std::span<const float> logits, const SamplingParams& params,
                             const SequenceIds& sequence, uint32_t choice) {
  SETU_CHECK(logits.size() == scores_.size(), "a row of logits has the vocabulary's length");
  std::ranges::transform(logits, scores_.begin(), Ordered);

  SampledToken token;
  float normaliser = 0.0f;
  if (params.want_logprobs) {
    normaliser = LogNormaliser();
    SelectLikeliest(params.top_logprobs);
    std::ranges::sort_heap(candidates_, Likelier{scores_.data()});
    token.top.reserve(candidates_.size());
    for (TokenId id : candidates_) token.top.push_back({id, scores_[id] - normaliser});
  }
  Penalise(params, sequence);
  token.id = params.temperature < kGreedyTemperature
                 ? Likeliest()
                 : Draw(params, UniformAt(params.seed, sequence.ids.size(), choice));
  if (params.want_logprobs) token.logprob = Ordered(logits[token.id]) - normaliser;
  return token;
}

void Sampler::Penalise(const SamplingParams& params, const SequenceIds& sequence) {
  const std::span<const TokenId> generated = sequence.ids.subspan(sequence.prompt_length);
  if (params.repetition_penalty != 1.0f) {
    for (TokenId id : sequence.ids) {
      if (counts_[id]++ > 0) continue;
      float& score = scores_[id];
      score = score > 0.0f ? score / params.repetition_penalty : score * params.repetition_penalty;
    }
    for (TokenId id : sequence.ids) counts_[id] = 0;
  }
  if (params.frequency_penalty != 0.0f || params.presence_penalty != 0.0f) {
    for (TokenId id : generated) ++counts_[id];
    for (TokenId id : generated) {
      if (counts_[id] == 0) continue;
      scores_[id] -= params.frequency_penalty * static_cast<float>(counts_[id]);
      scores_[id] -= params.presence_penalty;
      counts_[id] = 0;
    }
  }
  for (const auto& [id, bias] : params.logit_bias) scores_[id] += bias;
  if (sequence.generated() < params.min_tokens) {
    for (TokenId id : params.end_ids) scores_[id] = kMinusInfinity;
  }
}

TokenId Sampler::Likeliest() const {
  TokenId likeliest = 0;
  float highest = scores_[0];
  for (size_t id = 1; id < scores_.size(); ++id) {
    if (scores_[id] <= highest) continue;
    highest = scores_[id];
    likeliest = static_cast<TokenId>(id);
  }
  return likeliest;
}

// log(sum exp(score)); 0 where no score is finite, so that every logprob is then -inf.
float Sampler::LogNormaliser() {
  const float highest = scores_[Likeliest()];
  if (highest == kMinusInfinity) return 0.0f;
  std::ranges::transform(scores_, weights_.begin(), [=](float s) { return s - highest; });
  kernels::ExpRow(weights_.data(), std::ssize(weights_), weights_.data());
  RowSum sum;
  for (size_t id = 0; id < weights_.size(); ++id) sum.Add(id, weights_[id]);
  return highest + static_cast<float>(kernels::Log(sum.Total()));
}

void Sampler::SelectLikeliest(int32_t count) {
  const Likelier likelier{scores_.data()};
  const auto vocabulary = static_cast<TokenId>(scores_.size());
  candidates_.resize(std::clamp(count, 0, vocabulary));
  std::iota(candidates_.begin(), candidates_.end(), 0);
  if (candidates_.empty()) return;
  std::ranges::make_heap(candidates_, likelier);
  for (TokenId id = count; id < vocabulary; ++id) {
    if (!likelier(id, candidates_.front())) continue;
    std::ranges::pop_heap(candidates_, likelier);
    candidates_.back() = id;
    std::ranges::push_heap(candidates_, likelier);
  }
}

TokenId Sampler::Draw(const SamplingParams& params, float uniform) {
  const TokenId likeliest = Likeliest();
  const float highest = scores_[likeliest];
  if (!std::isfinite(highest)) return likeliest;
  for (float& score : scores_) score = (score - highest) / params.temperature;
  kernels::ExpRow(scores_.data(), std::ssize(scores_), weights_.data());

  const Likelier likelier{scores_.data()};
  const auto vocabulary = static_cast<TokenId>(scores_.size());
  if (params.top_k > 0 && params.top_k < vocabulary) {
    SelectLikeliest(params.top_k);
    for (TokenId id = 0; id < vocabulary; ++id) {
      if (likelier(candidates_.front(), id)) weights_[id] = 0.0f;
    }
  }
  RowSum row;
  for (TokenId id = 0; id < vocabulary; ++id) row.Add(id, weights_[id]);
  const double mass = row.Total();

  // Top-p keeps the fewest ids, likeliest first, that reach its share; the draw is the last of the
  // fewest that reach a uniform share of what is kept. All ids below the floor together weigh less
  // than what lies behind that end, so no walk gets there.
  const bool cut = params.top_p < 1.0f || params.min_p > 0.0f;
  const double share = cut ? params.top_p : uniform;
  const double floor = std::max<double>(params.min_p, (1.0 - share) * mass / vocabulary);
  candidates_.clear();
  for (TokenId id = 0; id < vocabulary; ++id) {
    if (weights_[id] > 0.0f && weights_[id] >= floor) candidates_.push_back(id);
  }
  SETU_CHECK(!candidates_.empty(), "the likeliest id passes every filter");
  // [walked, end) holds the likeliest ids, least likely first; the rest is a heap.
  const auto less_likely = [&](TokenId a, TokenId b) { return likelier(b, a); };
  std::ranges::make_heap(candidates_, less_likely);
  auto walked = candidates_.end();
  double sum = 0.0;
  do {
    std::pop_heap(candidates_.begin(), walked--, less_likely);
    sum += weights_[*walked];
  } while (walked != candidates_.begin() && sum < share * mass);
  if (!cut) return *walked;

  const double target = uniform * sum;
  auto drawn = candidates_.end() - 1;
  for (sum = weights_[*drawn]; sum < target;) sum += weights_[*--drawn];
  return *drawn;
}

EndReason EndOf(const SamplingParams& params, TokenId id, int32_t generated) {
  if (std::ranges::binary_search(params.end_ids, id)) return EndReason::kEndId;
  return generated >= params.max_tokens ? EndReason::kMaxTokens : EndReason::kNone;
}

float UniformAt(uint64_t seed, uint64_t position, uint32_t choice) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  const auto block =
      Philox4x32({low(position), high(position), choice, 0}, {low(seed), high(seed)});
  return static_cast<float>(block[0] >> 8) * 0x1p-24f;
}

}  // namespace setu::engine
