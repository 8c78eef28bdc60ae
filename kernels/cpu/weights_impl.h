// SPDX-License-Identifier: Apache-2.0
// Reading a tile of packed weights: quants as vectors of bytes, scales as floats, whole groups as
// dequantised floats.
#ifndef SETU_KERNELS_CPU_WEIGHTS_IMPL_H_
#define SETU_KERNELS_CPU_WEIGHTS_IMPL_H_

#include "kernels/cpu/lanes_impl.h"
#include "kernels/cpu/packed_layout.h"

namespace setu::kernels {
namespace {

// Calls f.template operator()<type>() for the type that `type` names.
template <class F>
inline void WithType(WeightType type, F f) {
  switch (type) {
    case WeightType::kF32:
      return f.template operator()<WeightType::kF32>();
    case WeightType::kF16:
      return f.template operator()<WeightType::kF16>();
    case WeightType::kBF16:
      return f.template operator()<WeightType::kBF16>();
    case WeightType::kQ4_0:
      return f.template operator()<WeightType::kQ4_0>();
    case WeightType::kQ4_1:
      return f.template operator()<WeightType::kQ4_1>();
    case WeightType::kQ5_0:
      return f.template operator()<WeightType::kQ5_0>();
    case WeightType::kQ5_1:
      return f.template operator()<WeightType::kQ5_1>();
    case WeightType::kQ8_0:
      return f.template operator()<WeightType::kQ8_0>();
    case WeightType::kQ4_K:
      return f.template operator()<WeightType::kQ4_K>();
    case WeightType::kQ5_K:
      return f.template operator()<WeightType::kQ5_K>();
    case WeightType::kQ6_K:
      return f.template operator()<WeightType::kQ6_K>();
  }
}

// Shifts bit `kBit` of each byte (and those above it) to bit 4; neighbours are masked by the
// caller.
template <int kBit>
inline I32x16 BitToFour(I32x16 v) {
  if constexpr (kBit <= 4) return ShiftLeft<4 - kBit>(v);
  if constexpr (kBit > 4) return ShiftRight<kBit - 4>(v);
}

// Quants of k = 4 i .. 4 i + 3 of a group: unsigned bytes, signed for Q8_0.
template <WeightType kType, int kI>
inline I32x16 Quants(const uint8_t* group) {
  constexpr GroupLayout kLayout = LayoutOf(kType);
  const uint8_t* plane = group + kLayout.sub_scales;
  const uint8_t* quants = plane + kLayout.plane;
  if constexpr (kLayout.quants == 512) {
    return LoadBytes(quants + 64 * kI);
  } else {
    const I32x16 pair = LoadBytes(quants + 64 * (kI % 4));
    const I32x16 low = AndI(kI < 4 ? pair : ShiftRight<4>(pair), Set1I(0x0f0f0f0f));
    if constexpr (kLayout.plane == 64) {
      return OrI(low, AndI(BitToFour<kI>(LoadBytes(plane)), Set1I(0x10101010)));
    } else if constexpr (kLayout.plane == 128) {
      const I32x16 bits = LoadBytes(plane + 64 * (kI / 4));
      return OrI(low, AndI(BitToFour<2 * (kI % 4)>(bits), Set1I(0x30303030)));
    } else {
      return low;
    }
  }
}

// The quants of k = 4 kI + kJ of a group, minus what stands for 0, as floats.
template <WeightType kType, int kI, int kJ>
inline F32x16 QuantToFloat(const uint8_t* group) {
  constexpr GroupLayout kLayout = LayoutOf(kType);
  if constexpr (kLayout.quants == 256 && kLayout.plane == 0) {
    const I32x16 pair = LoadBytes(group + kLayout.sub_scales + 64 * (kI % 4));
    return NibbleToFloat<8 * kJ + (kI < 4 ? 0 : 4), kLayout.zero>(pair);
  } else {
    const I32x16 top = ShiftLeft<24 - 8 * kJ>(Quants<kType, kI>(group));
    return kType == WeightType::kQ8_0 ? ToFloat(ShiftRightSigned<24>(top))
                                      : ToFloat(SubI(ShiftRight<24>(top), Set1I(kLayout.zero)));
  }
}

// Scale and minimum of 16 rows for the 32 weights of a group: w = scale * (q - zero) + minimum.
// K-quants with minimum: scale * sub_scale, and -(dmin * sub_minimum); Q6_K: the block's scale
// alone, its two sub-scales per group are integers.
struct GroupScales {
  F32x16 scale, minimum;
};

template <WeightType kType>
inline GroupScales ReadScales(const uint8_t* block, const uint8_t* group) {
  constexpr GroupLayout kLayout = LayoutOf(kType);
  const uint16_t* header = reinterpret_cast<const uint16_t*>(block);
  GroupScales s = {LoadHalf(header), Set1(0.0f)};
  if constexpr (kLayout.minimum) s.minimum = LoadHalf(header + kTileRows);
  if constexpr (kLayout.minimum && kLayout.sub_scales != 0) {
    s.scale = Mul(s.scale, ToFloat(LoadU8(group)));
    s.minimum = Mul(Mul(s.minimum, Set1(-1.0f)), ToFloat(LoadU8(group + kTileRows)));
  }
  return s;
}

// take(k, w) for k = 0 .. count - 1, ascending: the weights w of the 16 rows of `tile` at 32 chunk
// + k. The bits are those of GGML's dequantisation: every product before the one addition is exact.
template <WeightType kType, class Take>
inline void DequantiseEach(const uint8_t* tile, int64_t chunk, int64_t count, const Take& take) {
  if constexpr (kType == WeightType::kF32) {
    const float* p = reinterpret_cast<const float*>(tile) + chunk * kGroup * kTileRows;
    for (int64_t k = 0; k < count; ++k) take(k, Load(p + k * kTileRows));
  } else if constexpr (!IsQuantised(kType)) {
    const uint16_t* p = reinterpret_cast<const uint16_t*>(tile) + chunk * kGroup * kTileRows;
    for (int64_t k = 0; k < count; ++k, p += kTileRows) {
      take(k, kType == WeightType::kF16 ? LoadHalf(p) : LoadBfloat(p));
    }
  } else {
    constexpr GroupLayout kLayout = LayoutOf(kType);
    const uint8_t* block = tile + chunk / kLayout.groups * BlockBytes(kLayout);
    const uint8_t* group = block + kLayout.header + chunk % kLayout.groups * GroupBytes(kLayout);
    const GroupScales scales = ReadScales<kType>(block, group);
    const auto four_k = [&]<int kI>() {
      F32x16 scale = scales.scale;
      if constexpr (kType == WeightType::kQ6_K) {
        scale = Mul(scale, ToFloat(LoadS8(group + (kI < 4 ? 0 : kTileRows))));
      }
      const auto one_k = [&]<int kJ>() {
        const F32x16 q = QuantToFloat<kType, kI, kJ>(group);
        take(4 * kI + kJ, kLayout.minimum ? Fma(scale, q, scales.minimum) : Mul(scale, q));
      };
      Unroll<0, 4>(one_k);
    };
    Unroll<0, 8>(four_k);
  }
}

// The same as floats, [count][16 rows].
template <WeightType kType>
inline void Dequantise(const uint8_t* tile, int64_t chunk, int64_t count, float* out) {
  DequantiseEach<kType>(tile, chunk, count,
                        [&](int64_t k, F32x16 w) { Store(out + k * kTileRows, w); });
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_WEIGHTS_IMPL_H_
