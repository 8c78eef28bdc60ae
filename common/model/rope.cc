// SPDX-License-Identifier: Apache-2.0
#include "common/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/math.h"

namespace setu::model {
namespace {

using Kind = RopeScaling::Kind;

constexpr double kTwoPi = 2.0 * std::numbers::pi;

double Llama3(const RopeScaling& scaling, double frequency) {
  const double rotations = scaling.original_context * frequency / kTwoPi;
  const double keep = std::clamp(
      (rotations - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor),
      0.0, 1.0);
  return frequency * (keep + (1.0 - keep) / scaling.factor);
}

// The pair of values that turns `rotations` times over the original context.
double YarnPair(const ModelConfig& config, double rotations) {
  return config.rotary_dim *
         kernels::Log(config.rope_scaling.original_context / (rotations * kTwoPi)) /
         (2.0 * kernels::Log(static_cast<double>(config.rope_base)));
}

double Yarn(const ModelConfig& config, int32_t pair, double frequency) {
  const RopeScaling& scaling = config.rope_scaling;
  const double last = config.rotary_dim - 1;
  const double fast = std::clamp(std::floor(YarnPair(config, scaling.beta_fast)), 0.0, last);
  const double slow = std::clamp(std::ceil(YarnPair(config, scaling.beta_slow)), 0.0, last);
  const double ramp = std::clamp((pair - fast) / std::max(slow - fast, 0.001), 0.0, 1.0);
  const double keep = (1.0 - ramp) * scaling.ext_factor;
  return frequency * (keep + (1.0 - keep) / scaling.factor);
}

double Magnitude(const RopeScaling& scaling) {
  if (scaling.kind != Kind::kYarn) return 1.0;
  const double stretch = std::max(1.0, static_cast<double>(scaling.factor));
  return scaling.attn_factor * (1.0 + 0.1 * kernels::Log(stretch));
}

}  // namespace

std::vector<double> RopeFrequencies(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  const double log_base = kernels::Log(static_cast<double>(config.rope_base));
  std::vector<double> frequencies(config.rotary_dim / 2);
  for (int32_t pair = 0; pair < config.rotary_dim / 2; ++pair) {
    double& frequency = frequencies[pair];
    frequency = kernels::Exp(-2.0 * pair / config.rotary_dim * log_base);
    switch (scaling.kind) {
      case Kind::kNone:
        break;
      case Kind::kLinear:
        frequency /= scaling.factor;
        break;
      case Kind::kLlama3:
        frequency = Llama3(scaling, frequency);
        break;
      case Kind::kYarn:
        frequency = Yarn(config, pair, frequency);
        break;
    }
    if (!scaling.frequency_divisors.empty()) frequency /= scaling.frequency_divisors[pair];
  }
  return frequencies;
}

RopeAngles::RopeAngles(const ModelConfig& config)
    : positions_(config.context_length),
      rotary_dim_(config.rotary_dim),
      cos_(positions_ * (rotary_dim_ / 2)),
      sin_(cos_.size()) {
  const std::vector<double> frequencies = RopeFrequencies(config);
  const double magnitude = Magnitude(config.rope_scaling);
  size_t at = 0;
  for (int64_t position = 0; position < positions_; ++position) {
    for (double frequency : frequencies) {
      const double angle = static_cast<double>(position) * frequency;
      cos_[at] = static_cast<float>(magnitude * kernels::Cos(angle));
      sin_[at] = static_cast<float>(magnitude * kernels::Sin(angle));
      ++at;
    }
  }
}

kernels::RopeTable RopeAngles::table() const {
  return {cos_.data(), sin_.data(), positions_, rotary_dim_};
}

}  // namespace setu::model
