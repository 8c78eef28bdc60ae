// SPDX-License-Identifier: Apache-2.0
#include "common/model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace setu::model {
namespace {

using Kind = RopeScaling::Kind;

ModelConfig Config(RopeScaling scaling = {}) {
  ModelConfig config;
  config.context_length = 4096;
  config.rope_base = 500000.0f;
  config.rotary_dim = 64;
  config.rope_scaling = std::move(scaling);
  return config;
}

double Plain(int pair) { return std::pow(500000.0, -2.0 * pair / 64); }
double Wavelength(int pair) { return 2 * std::numbers::pi / Plain(pair); }

TEST(RopeFrequencies, FallGeometrically) {
  const auto frequencies = RopeFrequencies(Config());
  ASSERT_EQ(frequencies.size(), 32u);
  EXPECT_EQ(frequencies[0], 1.0);
  for (int i = 0; i < 32; ++i) EXPECT_NEAR(frequencies[i] / Plain(i), 1.0, 1e-14);
}

TEST(RopeFrequencies, LinearScalingDividesAll) {
  const auto frequencies = RopeFrequencies(Config({.kind = Kind::kLinear, .factor = 4.0f}));
  for (int i = 0; i < 32; ++i) EXPECT_NEAR(frequencies[i] / Plain(i), 0.25, 1e-14);
}

// As Llama 3.1 describes it: by wavelength, with a ramp in between.
TEST(RopeFrequencies, Llama3KeepsShortWavesAndDividesLongOnes) {
  const auto frequencies = RopeFrequencies(Config({.kind = Kind::kLlama3,
                                                   .factor = 8.0f,
                                                   .original_context = 8192,
                                                   .low_freq_factor = 1.0f,
                                                   .high_freq_factor = 4.0f}));
  int ramp = 0;
  for (int i = 0; i < 32; ++i) {
    double expected = Plain(i);
    if (Wavelength(i) > 8192.0 / 1) {
      expected /= 8;
    } else if (Wavelength(i) > 8192.0 / 4) {
      const double smooth = (8192 / Wavelength(i) - 1) / (4 - 1);
      expected = (1 - smooth) * expected / 8 + smooth * expected;
      ++ramp;
    }
    EXPECT_NEAR(frequencies[i] / expected, 1.0, 1e-14) << i;
  }
  EXPECT_GT(ramp, 0);
}

TEST(RopeFrequencies, DivisorsOfTheFileAreApplied) {
  RopeScaling scaling;
  for (int i = 0; i < 32; ++i) scaling.frequency_divisors.push_back(1.0f + i);
  const auto frequencies = RopeFrequencies(Config(scaling));
  for (int i = 0; i < 32; ++i) EXPECT_NEAR(frequencies[i] * (1 + i) / Plain(i), 1.0, 1e-14);
}

// By rotations over the original context: more than beta_fast keep, fewer than beta_slow divide.
TEST(RopeFrequencies, YarnDividesPairsThatTurnLittle) {
  const auto frequencies =
      RopeFrequencies(Config({.kind = Kind::kYarn, .factor = 4.0f, .original_context = 8192}));
  double last = 1.0;
  for (int i = 0; i < 32; ++i) {
    const double share = frequencies[i] / Plain(i);
    const double rotations = 8192 / Wavelength(i);
    if (rotations > 64) {
      EXPECT_NEAR(share, 1.0, 1e-14) << i;
    }
    if (rotations < 0.5) {
      EXPECT_NEAR(share, 0.25, 1e-14) << i;
    }
    EXPECT_LE(share, last + 1e-14) << i;
    last = share;
  }
}

void ExpectTable(const ModelConfig& config, double magnitude) {
  const RopeAngles angles(config);
  const kernels::RopeTable table = angles.table();
  const auto frequencies = RopeFrequencies(config);
  ASSERT_EQ(table.positions, 4096);
  ASSERT_EQ(table.rotary_dim, 64);
  for (int64_t position : {0, 1, 17, 1000, 4095}) {
    for (int i = 0; i < 32; ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      EXPECT_NEAR(table.cos[position * 32 + i], magnitude * std::cos(angle), 1e-7);
      EXPECT_NEAR(table.sin[position * 32 + i], magnitude * std::sin(angle), 1e-7);
    }
  }
}

TEST(RopeAngles, AreCosAndSinOfPositionTimesFrequency) { ExpectTable(Config(), 1.0); }

TEST(RopeAngles, YarnScalesCosAndSin) {
  ExpectTable(
      Config({.kind = Kind::kYarn, .factor = 4.0f, .original_context = 8192, .attn_factor = 0.5f}),
      0.5 * (1 + 0.1 * std::log(4.0)));
}

}  // namespace
}  // namespace setu::model
