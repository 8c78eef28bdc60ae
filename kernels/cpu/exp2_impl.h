// SPDX-License-Identifier: Apache-2.0
// 2^x for the weights of attention that are rounded to bfloat16: half the work of exp_impl.h. A
// simd_*.h comes before.
#ifndef SETU_KERNELS_CPU_EXP2_IMPL_H_
#define SETU_KERNELS_CPU_EXP2_IMPL_H_

namespace setu::kernels {
namespace {

// For x up to 127; below -126 as if it were -126. 2^n times a polynomial with 1 at 0 that is off by
// less than 2^-18 for |r| <= 1/2, by no more than 2^-9 of what rounding to bfloat16 does. A NaN
// that came of bfloat16s stays one: its last bits are zero.
inline F32x16 Exp2Of(F32x16 x) {
  constexpr float kCoefficients[] = {0x1.ca9008p-5f, 0x1.ebf1b4p-3f, 0x1.62dfcap-1f, 1.0f};
  const F32x16 t = Max(Set1(-126.0f), x);  // The second operand may be NaN, and stays.
  // The nearest integer n, by 1.5 * 2^23, which leaves no bits for a fraction; a shift by 23 leaves
  // of this sum n alone.
  const F32x16 rounding = Set1(12582912.0f), sum = Add(t, rounding);
  const F32x16 r = Sub(t, Sub(sum, rounding));
  F32x16 p = Set1(0x1.409104p-7f);
  for (const float c : kCoefficients) p = Fma(p, r, Set1(c));
  return BitCast(AddI(BitCast(p), ShiftLeft<23>(BitCast(sum))));
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_EXP2_IMPL_H_
