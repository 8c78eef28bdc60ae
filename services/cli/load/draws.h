// SPDX-License-Identifier: Apache-2.0
// The random numbers of a load: each is a function of the seed, of what it is for and of an index,
// so the request with some index is the same whatever was drawn before it. Pure, and the same with
// every compiler: the library's own distributions are not.
//
//   Draws draws(seed, DrawsOf::kShape, /*index=*/request);
//   draws.Below(10), draws.Unit(), draws.Normal()
#ifndef SETU_SERVICES_CLI_LOAD_DRAWS_H_
#define SETU_SERVICES_CLI_LOAD_DRAWS_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "common/engine/philox.h"

namespace setu::cli {

enum class DrawsOf : uint32_t { kSeeds, kArrivals, kShape, kPrefix, kTail };

class Draws {
 public:
  Draws(uint64_t seed, DrawsOf purpose, uint64_t index)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter_{0, static_cast<uint32_t>(purpose), static_cast<uint32_t>(index),
                 static_cast<uint32_t>(index >> 32)} {}

  uint64_t Next() {
    const std::array<uint32_t, 4> drawn = engine::Philox4x32(counter_, key_);
    ++counter_[0];
    return (uint64_t{drawn[0]} << 32) | drawn[1];
  }
  // Within (0, 1).
  double Unit() { return (static_cast<double>(Next() >> 12) + 0.5) * 0x1p-52; }
  // 0 .. n-1, for n up to 2^32: the bias is below 2^-32.
  uint64_t Below(uint64_t n) { return ((Next() >> 32) * n) >> 32; }
  // Mean 0, deviation 1.
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(Unit()));
    return radius * std::cos(2 * std::numbers::pi * Unit());
  }
  // Mean 1.
  double Exponential() { return -std::log(Unit()); }

 private:
  const std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_DRAWS_H_
