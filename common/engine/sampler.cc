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
#include "kernels/scores.h"

namespace setu::engine {
namespace {

constexpr float kGreedyTemperature = 1e-5f;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Scores that are looked at together: few enough to look at twice.
constexpr size_t kPiece = 512;

// Sums of one row, and roundings, differ by less, whatever their order.
constexpr double kAnyOrder = 1e-6;

// The one order of all choices: higher score first, ties to the lowest id.
struct Likelier {
  const float* scores;
  bool operator()(TokenId a, TokenId b) const {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  }
};

double Sum(std::span<const float> weights) {
  return kernels::SumScores(weights.data(), std::ssize(weights), /*least=*/0.0f);
}

}  // namespace

Sampler::Sampler(int32_t vocabulary)
    : scores_(vocabulary), weights_(vocabulary), selected_(vocabulary), counts_(vocabulary, 0) {
  candidates_.reserve(vocabulary);
}

SampledToken Sampler::Sample(std::span<const float> logits, const SamplingParams& params,
                             const SequenceIds& sequence, uint32_t choice) {
  SETU_CHECK(logits.size() == scores_.size(), "a row of logits has the vocabulary's length");
  kernels::OrderScores(logits.data(), std::ssize(logits), scores_.data());

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
  if (params.want_logprobs) {
    float raw = 0.0f;
    kernels::OrderScores(&logits[token.id], 1, &raw);
    token.logprob = raw - normaliser;
  }
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
  const std::span<const float> scores = scores_;
  size_t best = 0;  // where the first piece with the highest score starts
  float highest = kMinusInfinity;
  for (size_t at = 0; at < scores.size(); at += kPiece) {
    const auto piece = scores.subspan(at, std::min(kPiece, scores.size() - at));
    const float highest_here = kernels::HighestScore(piece.data(), std::ssize(piece));
    if (highest_here <= highest) continue;
    highest = highest_here;
    best = at;
  }
  return static_cast<TokenId>(std::ranges::find(scores.subspan(best), highest) - scores.begin());
}

// log(sum exp(score)); 0 where no score is finite, so that every logprob is then -inf.
float Sampler::LogNormaliser() {
  const float highest = scores_[Likeliest()];
  if (highest == kMinusInfinity) return 0.0f;
  std::ranges::transform(scores_, weights_.begin(), [=](float s) { return s - highest; });
  kernels::ExpRow(weights_.data(), std::ssize(weights_), weights_.data());
  return highest + static_cast<float>(kernels::Log(Sum(weights_)));
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

// A weight below which no walk gets that ends at `wanted`: what is not below it, together, is more.
// `least` is one too. A high floor leaves few to put in order.
float Sampler::Floor(double wanted, float least) const {
  for (float floor = 0.25f; floor > least; floor /= 4) {
    const double above = kernels::SumScores(weights_.data(), std::ssize(weights_), floor);
    if (above > wanted * (1.0 + kAnyOrder)) return floor;
  }
  return least;
}

TokenId Sampler::Draw(const SamplingParams& params, float uniform) {
  const TokenId likeliest = Likeliest();
  const float highest = scores_[likeliest];
  if (!std::isfinite(highest)) return likeliest;
  kernels::ScaleScores(scores_.data(), std::ssize(scores_), highest, params.temperature);
  kernels::ExpRow(scores_.data(), std::ssize(scores_), weights_.data());

  const Likelier likelier{scores_.data()};
  const auto vocabulary = static_cast<TokenId>(scores_.size());
  if (params.top_k > 0 && params.top_k < vocabulary) {
    SelectLikeliest(params.top_k);
    for (TokenId id = 0; id < vocabulary; ++id) {
      if (likelier(candidates_.front(), id)) weights_[id] = 0.0f;
    }
  }
  const double mass = Sum(weights_);

  // Top-p keeps the fewest ids, likeliest first, that reach its share; the draw is the last of the
  // fewest that reach a uniform share of what is kept. All ids below the floor together weigh less
  // than what lies behind that end, so no walk gets there.
  const bool cut = params.top_p < 1.0f || params.min_p > 0.0f;
  const double share = cut ? params.top_p : uniform;
  const double negligible = (1.0 - kAnyOrder) * (1.0 - share) * mass / vocabulary;
  const float least = std::max(params.min_p, static_cast<float>(negligible));
  const float floor =
      std::max(Floor(share * mass, least), std::numeric_limits<float>::denorm_min());
  const auto candidates = std::span(selected_).first(
      kernels::SelectScores(weights_.data(), vocabulary, floor, selected_.data()));
  SETU_CHECK(!candidates.empty(), "the likeliest id passes every filter");
  // [walked, end) holds the likeliest ids, least likely first; the rest is a heap.
  const auto less_likely = [&](TokenId a, TokenId b) { return likelier(b, a); };
  std::ranges::make_heap(candidates, less_likely);
  auto walked = candidates.end();
  double sum = 0.0;
  do {
    std::pop_heap(candidates.begin(), walked--, less_likely);
    sum += weights_[*walked];
  } while (walked != candidates.begin() && sum < share * mass);
  if (!cut) return *walked;

  const double target = uniform * sum;
  auto drawn = candidates.end() - 1;
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
