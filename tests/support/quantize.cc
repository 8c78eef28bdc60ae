// SPDX-License-Identifier: Apache-2.0
#include "tests/support/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "common/base/check.h"
#include "tests/support/gguf_writer.h"

namespace setu::test {
namespace {

using kernels::WeightType;

constexpr size_t kBlock = 32;

std::string Half(float value) { return RawBytes(static_cast<_Float16>(value)); }

// Nearest, ties to even.
std::string BrainFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return RawBytes(static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16));
}

// 32 values of 4 bits: value i in the low half of byte i, value i + 16 in its high half.
template <typename ToFour>
std::string Nibbles(std::span<const float> block, ToFour four) {
  std::string bytes;
  for (size_t i = 0; i < kBlock / 2; ++i) {
    bytes.push_back(static_cast<char>(four(block[i]) | four(block[i + kBlock / 2]) << 4));
  }
  return bytes;
}

int ClampedRound(float value, int low, int high) {
  return std::clamp(static_cast<int>(std::lround(value)), low, high);
}

// value = (q - 8) * d
std::string BlockQ4_0(std::span<const float> block) {
  const float most = *std::max_element(
      block.begin(), block.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  const float d = most / -8, inverse = d != 0 ? 1 / d : 0;
  return Half(d) + Nibbles(block, [&](float x) { return ClampedRound(x * inverse + 8, 0, 15); });
}

// value = q * d + m
std::string BlockQ4_1(std::span<const float> block) {
  const auto [low, high] = std::minmax_element(block.begin(), block.end());
  const float m = *low, d = (*high - *low) / 15, inverse = d != 0 ? 1 / d : 0;
  return Half(d) + Half(m) +
         Nibbles(block, [&](float x) { return ClampedRound((x - m) * inverse, 0, 15); });
}

// value = q * d
std::string BlockQ8_0(std::span<const float> block) {
  float most = 0;
  for (float x : block) most = std::max(most, std::fabs(x));
  const float d = most / 127, inverse = d != 0 ? 1 / d : 0;
  std::string bytes = Half(d);
  for (float x : block) bytes.push_back(static_cast<char>(ClampedRound(x * inverse, -127, 127)));
  return bytes;
}

template <typename Encode>
std::string Blocks(std::span<const float> values, size_t size, Encode encode) {
  SETU_CHECK(values.size() % size == 0, "values are whole blocks");
  std::string bytes;
  for (size_t i = 0; i < values.size(); i += size) bytes += encode(values.subspan(i, size));
  return bytes;
}

}  // namespace

std::string Quantize(std::span<const float> values, WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return Blocks(values, 1, [](auto x) { return RawBytes(x[0]); });
    case WeightType::kF16:
      return Blocks(values, 1, [](auto x) { return Half(x[0]); });
    case WeightType::kBF16:
      return Blocks(values, 1, [](auto x) { return BrainFloat(x[0]); });
    case WeightType::kQ4_0:
      return Blocks(values, kBlock, BlockQ4_0);
    case WeightType::kQ4_1:
      return Blocks(values, kBlock, BlockQ4_1);
    case WeightType::kQ8_0:
      return Blocks(values, kBlock, BlockQ8_0);
    default:
      break;
  }
  SETU_CHECK(false, "tests write F32, F16, BF16, Q4_0, Q4_1 or Q8_0");
}

}  // namespace setu::test
