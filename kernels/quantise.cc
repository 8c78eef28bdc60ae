// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantise.h"

#include <algorithm>
#include <cstring>

#include "kernels/check.h"
#include "kernels/cpu/half.h"
#include "kernels/tensor.h"

namespace setu::kernels {
namespace {

constexpr int kGroup = 32;       // values that share a scale
constexpr int kGroups = 8;       // of a block of a K-quant
constexpr int kMaxSixBits = 63;  // of the scales of Q4_K and Q5_K
constexpr int kLanes = 8;        // independent minima and maxima, for the compiler to vectorise

struct Range {
  float low, high;
  // The value of the largest magnitude, with its sign.
  float Largest() const { return -low > high ? low : high; }
};

// Of `count` values, a multiple of kLanes.
Range RangeOf(const float* x, int count) {
  float low[kLanes], high[kLanes];
  std::copy_n(x, kLanes, low);
  std::copy_n(x, kLanes, high);
  for (int i = kLanes; i < count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float v = x[i + lane];
      low[lane] = v < low[lane] ? v : low[lane];
      high[lane] = v > high[lane] ? v : high[lane];
    }
  }
  return {*std::min_element(low, low + kLanes), *std::max_element(high, high + kLanes)};
}

float Inverse(float step) { return step != 0 ? 1 / step : 0; }

// The quant of `value`, which counts steps and has half a step added. NaN gives 0.
uint8_t Level(float value, int highest) {
  const float most = static_cast<float>(highest);
  return static_cast<uint8_t>(static_cast<int>(value > 0 ? (value < most ? value : most) : 0));
}

// Halves away from zero.
int8_t SignedLevel(float value, int lowest, int highest) {
  const float least = static_cast<float>(lowest), most = static_cast<float>(highest);
  const float near = value > least ? (value < most ? value : most) : least;
  // Signs come as they please: a branch would be guessed wrong every second time.
  return static_cast<int8_t>(static_cast<int>(near + __builtin_copysignf(0.5f, near)));
}

// Writes `value` as f16 and gives back what a reader will see.
float PutHalf(float value, uint8_t* out) {
  const uint16_t half = FloatToHalf(value);
  std::memcpy(out, &half, sizeof(half));
  return HalfToFloat(half);
}

// Bit 4 of 32 quants in 4 bytes, their low nibbles in 16: value i low, value i + 16 high.
void PutFifthBits(const uint8_t* q, uint8_t* out) {
  std::memset(out, 0, kGroup / 8);
  for (int i = 0; i < kGroup; ++i) out[i / 8] |= (q[i] >> 4) << (i % 8);
}
void PutNibbles(const uint8_t* q, uint8_t* out) {
  for (int i = 0; i < kGroup / 2; ++i) {
    out[i] = static_cast<uint8_t>((q[i] & 15) | q[i + kGroup / 2] << 4);
  }
}

// value = (q - zero) * d: Q4_0 {d, nibbles}, Q5_0 {d, bits, nibbles}.
void SymmetricBlock(const float* x, int zero, uint8_t* out) {
  const float d = RangeOf(x, kGroup).Largest() / static_cast<float>(-zero);
  const float inverse = Inverse(d), shift = static_cast<float>(zero) + 0.5f;
  uint8_t q[kGroup];
  for (int i = 0; i < kGroup; ++i) q[i] = Level(x[i] * inverse + shift, 2 * zero - 1);
  PutHalf(d, out);
  out += 2;
  if (zero == 16) {
    PutFifthBits(q, out);
    out += kGroup / 8;
  }
  PutNibbles(q, out);
}

// value = q * d + m: Q4_1 {d, m, nibbles}, Q5_1 {d, m, bits, nibbles}.
void OffsetBlock(const float* x, int highest, uint8_t* out) {
  const Range range = RangeOf(x, kGroup);
  const float d = (range.high - range.low) / static_cast<float>(highest), inverse = Inverse(d);
  uint8_t q[kGroup];
  for (int i = 0; i < kGroup; ++i) q[i] = Level((x[i] - range.low) * inverse + 0.5f, highest);
  PutHalf(d, out);
  PutHalf(range.low, out + 2);
  out += 4;
  if (highest == 31) {
    PutFifthBits(q, out);
    out += kGroup / 8;
  }
  PutNibbles(q, out);
}

// value = q * d: Q8_0 {d, int8}.
void Int8Block(const float* x, uint8_t* out) {
  const float largest = RangeOf(x, kGroup).Largest(), d = (largest < 0 ? -largest : largest) / 127;
  const float inverse = Inverse(d);
  PutHalf(d, out);
  for (int i = 0; i < kGroup; ++i) {
    out[2 + i] = static_cast<uint8_t>(SignedLevel(x[i] * inverse, -127, 127));
  }
}

// The 6-bit scale and minimum of group j, into 12 bytes that were zero.
void PutSixBits(int j, uint8_t scale, uint8_t minimum, uint8_t* packed) {
  if (j < 4) {
    packed[j] |= scale;
    packed[j + 4] |= minimum;
  } else {
    packed[j + 4] |= (scale & 15) | (minimum & 15) << 4;
    packed[j - 4] |= scale >> 4 << 6;
    packed[j] |= minimum >> 4 << 6;
  }
}

// value = q * d * scale - dmin * minimum: Q4_K {d, dmin, scales 12, nibbles 128}, Q5_K with bits 32
// before the nibbles; the readers in cpu/packed_matrix.cc say how they lie.
void KBlock(const float* x, int highest, uint8_t* out) {
  float scale[kGroups], minimum[kGroups];
  for (int j = 0; j < kGroups; ++j) {
    const Range range = RangeOf(x + j * kGroup, kGroup);
    minimum[j] = range.low < 0 ? -range.low : 0;
    scale[j] = (range.high + minimum[j]) / static_cast<float>(highest);
  }
  const float step_of_scales = *std::max_element(scale, scale + kGroups) / kMaxSixBits;
  const float step_of_minima = *std::max_element(minimum, minimum + kGroups) / kMaxSixBits;
  const float d = PutHalf(step_of_scales, out), dmin = PutHalf(step_of_minima, out + 2);
  uint8_t* const scales = out + 4;
  uint8_t* const bits = scales + 12;
  uint8_t* const nibbles = bits + (highest == 31 ? kGroup : 0);
  std::memset(scales, 0, nibbles - scales);
  for (int j = 0; j < kGroups; ++j) {
    const uint8_t s = Level(scale[j] * Inverse(step_of_scales) + 0.5f, kMaxSixBits);
    const uint8_t m = Level(minimum[j] * Inverse(step_of_minima) + 0.5f, kMaxSixBits);
    PutSixBits(j, s, m, scales);
    const float inverse = Inverse(d * s), offset = dmin * m;
    uint8_t* const to = nibbles + kGroup * (j / 2);
    for (int i = 0; i < kGroup; ++i) {
      const uint8_t q = Level((x[j * kGroup + i] + offset) * inverse + 0.5f, highest);
      to[i] = static_cast<uint8_t>(j % 2 == 0 ? q & 15 : (to[i] | q << 4));
      if (highest == 31) bits[i] |= (q >> 4) << j;
    }
  }
}

// value = (q - 32) * d * scale: Q6_K {low nibbles 128, high pairs 64, scales 16, d}.
void K6Block(const float* x, uint8_t* out) {
  constexpr int kHalfGroup = 16, kScales = 16, kZero = 32;
  float scale[kScales];
  for (int j = 0; j < kScales; ++j) {
    scale[j] = RangeOf(x + j * kHalfGroup, kHalfGroup).Largest() / -kZero;
  }
  const float step = RangeOf(scale, kScales).Largest() / -128;
  uint8_t* const scales = out + 192;
  const float d = PutHalf(step, out + 208);
  std::memset(out, 0, 192);
  for (int j = 0; j < kScales; ++j) {
    const int8_t s = SignedLevel(scale[j] * Inverse(step), -128, 127);
    scales[j] = static_cast<uint8_t>(s);
    const float inverse = Inverse(d * s);
    // Eight scales cover a half: 64 bytes of nibbles (32 values each, low then high), 32 of pairs.
    const int part = j % 8 / 2, first = j % 2 * kHalfGroup;
    uint8_t* const nibbles = out + 64 * (j / 8) + 32 * (part % 2) + first;
    uint8_t* const pairs = out + 128 + 32 * (j / 8) + first;
    for (int i = 0; i < kHalfGroup; ++i) {
      const uint8_t q = Level(x[j * kHalfGroup + i] * inverse + kZero + 0.5f, 2 * kZero - 1);
      nibbles[i] |= static_cast<uint8_t>((q & 15) << (part < 2 ? 0 : 4));
      pairs[i] |= static_cast<uint8_t>(q >> 4 << (2 * part));
    }
  }
}

template <typename Block>
void Blocks(WeightType type, const float* x, int64_t cols, uint8_t* out, Block block) {
  for (int64_t i = 0; i < cols; i += BlockValues(type), out += BlockBytes(type)) block(x + i, out);
}

template <typename ToSixteen>
void SixteenBits(const float* x, int64_t cols, uint8_t* out, ToSixteen to_sixteen) {
  for (int64_t i = 0; i < cols; ++i) {
    const uint16_t value = to_sixteen(x[i]);
    std::memcpy(out + 2 * i, &value, sizeof(value));
  }
}

}  // namespace

void QuantiseRow(WeightType type, const float* x, int64_t cols, std::byte* out) {
  SETU_KERNEL_CHECK(cols % BlockValues(type) == 0, "columns are whole blocks of the type");
  uint8_t* const to = reinterpret_cast<uint8_t*>(out);
  const auto blocks = [&](auto block) { Blocks(type, x, cols, to, block); };
  switch (type) {
    case WeightType::kF32:
      std::memcpy(to, x, sizeof(float) * static_cast<size_t>(cols));
      return;
    case WeightType::kF16:
      return SixteenBits(x, cols, to, FloatToHalf);
    case WeightType::kBF16:
      return SixteenBits(x, cols, to, FloatToBfloat);
    case WeightType::kQ4_0:
      return blocks([](const float* v, uint8_t* block) { SymmetricBlock(v, 8, block); });
    case WeightType::kQ5_0:
      return blocks([](const float* v, uint8_t* block) { SymmetricBlock(v, 16, block); });
    case WeightType::kQ4_1:
      return blocks([](const float* v, uint8_t* block) { OffsetBlock(v, 15, block); });
    case WeightType::kQ5_1:
      return blocks([](const float* v, uint8_t* block) { OffsetBlock(v, 31, block); });
    case WeightType::kQ8_0:
      return blocks(Int8Block);
    case WeightType::kQ4_K:
      return blocks([](const float* v, uint8_t* block) { KBlock(v, 15, block); });
    case WeightType::kQ5_K:
      return blocks([](const float* v, uint8_t* block) { KBlock(v, 31, block); });
    case WeightType::kQ6_K:
      return blocks(K6Block);
  }
  SETU_KERNEL_CHECK(false, "the type is one of WeightType");
}

}  // namespace setu::kernels
