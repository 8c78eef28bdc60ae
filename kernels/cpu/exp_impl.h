// SPDX-License-Identifier: Apache-2.0
// exp by one fixed sequence, for a scalar float (math.cc) and for sixteen lanes (a simd_*.h
// before).
#ifndef SETU_KERNELS_CPU_EXP_IMPL_H_
#define SETU_KERNELS_CPU_EXP_IMPL_H_

namespace setu::kernels {
namespace {

// e^x = 2^n e^r with |r| <= ln 2 / 2, where the Taylor polynomial of degree 7 is off by less than
// 2^-27. Results are never subnormal, so flush-to-zero changes nothing.
template <class V>
inline V ExpOf(V x) {
  constexpr float kLeast = -87.0f, kMost = 0x1.62e42ep+6f;
  constexpr float kCoefficients[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
  // The second operand of Max and Min is the one that may be NaN, and stays.
  const V t = Min(Same(x, kMost), Max(Same(x, kLeast), x));
  const auto n = RoundToInt(Mul(t, Same(x, 0x1.715476p+0f)));
  const V whole = ToFloat(n);
  const V r = Fma(whole, Same(x, 0x1.05c61p-29f), Fma(whole, Same(x, -0x1.62e43p-1f), t));
  V p = Same(x, 1.0f / 5040);
  for (const float c : kCoefficients) p = Fma(p, r, Same(x, c));
  const auto half = ShiftRightSigned<1>(n);
  const V y = Mul(Mul(p, PowerOf2(half)), PowerOf2(SubI(n, half)));
  const V bounded = SelectLess(x, Same(x, kLeast), Same(x, 0.0f), y);
  return SelectLess(Same(x, kMost), x, Same(x, __builtin_inff()), bounded);
}

// x / (1 + e^-x).
template <class V>
inline V SiluOf(V x) {
  return Div(x, Add(Same(x, 1.0f), ExpOf(Mul(x, Same(x, -1.0f)))));
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_EXP_IMPL_H_
