// SPDX-License-Identifier: Apache-2.0
// IEEE binary16 and bfloat16 by integer arithmetic, to nearest even; binary16 has the results of
// VCVTPH2PS and VCVTPS2PH. Subnormals stay, and a NaN is made quiet. Internal linkage: also
// included by files built for one ISA.
#ifndef SETU_KERNELS_CPU_HALF_H_
#define SETU_KERNELS_CPU_HALF_H_

#include <stdint.h>

namespace setu::kernels {
namespace {

inline float BitsToFloat(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t FloatToBits(float value) { return __builtin_bit_cast(uint32_t, value); }

inline float HalfToFloat(uint16_t half) {
  const uint32_t top = (uint32_t{half} & 0x8000u) << 16;
  const uint32_t exponent = half >> 10 & 31;
  const uint32_t mantissa = half & 1023;
  if (exponent == 31) {  // infinity, or NaN made quiet
    return BitsToFloat(top | 0x7f800000u | mantissa << 13 | (mantissa != 0 ? 0x400000u : 0u));
  }
  if (exponent != 0) return BitsToFloat(top | (exponent + 112) << 23 | mantissa << 13);
  if (mantissa == 0) return BitsToFloat(top);
  const int shift = __builtin_clz(mantissa) - 21;  // brings the leading one to bit 10
  return BitsToFloat(top | static_cast<uint32_t>(113 - shift) << 23 |
                     (mantissa << shift & 1023) << 13);
}

inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = FloatToBits(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (bits >> 13 & 1023));
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to 65536 or more
  if (magnitude < 0x33000000u) return sign;             // below half the least subnormal
  const uint32_t exponent = magnitude >> 23;
  const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  // Bits of the mantissa that a half of this size has no room for.
  const uint32_t drop = exponent >= 113 ? 13 : 126 - exponent;
  const uint32_t base = exponent >= 113 ? (exponent - 113) << 10 : 0;
  const uint32_t kept = mantissa >> drop;
  const uint32_t rest = mantissa & ((1u << drop) - 1);
  const uint32_t middle = 1u << (drop - 1);
  const uint32_t up = rest > middle || (rest == middle && (kept & 1) != 0) ? 1 : 0;
  return static_cast<uint16_t>(sign | (base + kept + up));  // a carry moves to the exponent
}

inline float BfloatToFloat(uint16_t value) { return BitsToFloat(uint32_t{value} << 16); }

inline uint16_t FloatToBfloat(float value) {
  const uint32_t bits = FloatToBits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);  // NaN
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_HALF_H_
