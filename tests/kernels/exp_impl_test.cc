// SPDX-License-Identifier: Apache-2.0
// The exponential of what is never positive has the bits of the whole one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "kernels/cpu/simd_portable.h"
// Then what is over its lanes.
#include "kernels/cpu/exp_impl.h"

namespace setu::kernels {
namespace {

uint32_t BitsOf(float x) { return std::bit_cast<uint32_t>(x); }

void ExpectSameBits(const std::array<float, 16>& x) {
  std::array<float, 16> whole, negative;
  Store(whole.data(), ExpOf(Load(x.data())));
  Store(negative.data(), ExpOfNegative(Load(x.data())));
  for (int i = 0; i < 16; ++i) ASSERT_EQ(BitsOf(negative[i]), BitsOf(whole[i])) << x[i];
}

TEST(ExpImplTest, OfNegativeHasTheBitsOfTheWhole) {
  constexpr uint32_t kStep = 1009;  // a prime, so that last bits differ from one to the next
  const uint32_t lowest = BitsOf(-std::numeric_limits<float>::infinity());
  for (uint32_t bits = BitsOf(-0.0f); bits <= lowest; bits += 16 * kStep) {
    std::array<float, 16> x;
    for (uint32_t i = 0; i < 16; ++i) {
      x[i] = std::bit_cast<float>(std::min(bits + i * kStep, lowest));
    }
    ExpectSameBits(x);
  }
}

// Where n changes, where results end, and NaN.
TEST(ExpImplTest, OfNegativeHasTheBitsOfTheWholeAtItsEnds) {
  for (const float end : {-0.34657359f, -86.98f, -87.0f, -88.0f}) {
    for (uint32_t bits = BitsOf(end) - 512; bits < BitsOf(end) + 512; bits += 16) {
      std::array<float, 16> x;
      for (uint32_t i = 0; i < 16; ++i) x[i] = std::bit_cast<float>(bits + i);
      ExpectSameBits(x);
    }
  }
  ExpectSameBits({0.0f, -0.0f, std::numeric_limits<float>::quiet_NaN()});
}

}  // namespace
}  // namespace setu::kernels
