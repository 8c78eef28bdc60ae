// SPDX-License-Identifier: Apache-2.0
// exp by one fixed sequence, for a scalar float (math.cc) and for sixteen lanes (a simd_*.h
// before).
#ifndef SETU_KERNELS_CPU_EXP_IMPL_H_
#define SETU_KERNELS_CPU_EXP_IMPL_H_

namespace setu::kernels {
namespace {

constexpr float kLeastOfExp = -87.0f, kMostOfExp = 0x1.62e42ep+6f, kLog2OfE = 0x1.715476p+0f;

// e^x = 2^n e^r, where r = x - n ln 2.
template <class V>
inline V RestOf(V x, V n) {
  return Fma(n, Same(x, 0x1.05c61p-29f), Fma(n, Same(x, -0x1.62e43p-1f), x));
}
// e^r for |r| <= ln 2 / 2, where the Taylor polynomial of degree 7 is off by less than 2^-27.
template <class V>
inline V ExpOfRest(V r) {
  constexpr float kCoefficients[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
  V p = Same(r, 1.0f / 5040);
  for (const float c : kCoefficients) p = Fma(p, r, Same(r, c));
  return p;
}

// Results are never subnormal, so flush-to-zero changes nothing.
template <class V>
inline V ExpOf(V x) {
  const V least = Same(x, kLeastOfExp), most = Same(x, kMostOfExp);
  // The second operand of Max and Min is the one that may be NaN, and stays.
  const V t = Min(most, Max(least, x));
  const auto n = RoundToInt(Mul(t, Same(x, kLog2OfE)));
  const V p = ExpOfRest(RestOf(t, ToFloat(n)));
  const auto half = ShiftRightSigned<1>(n);
  const V y = Mul(Mul(p, PowerOf2(half)), PowerOf2(SubI(n, half)));
  const V bounded = SelectLess(x, least, Same(x, 0.0f), y);
  return SelectLess(most, x, Same(x, __builtin_inff()), bounded);
}

// The same bits for x that are at most zero, in two thirds of the operations: e^x is a normal float
// or zero, so n can be added to an exponent. For lanes alone.
template <class V>
inline V ExpOfNegative(V x) {
  const V least = Same(x, kLeastOfExp), t = Max(least, x);  // NaN stays, as above
  const auto n = RoundToInt(Mul(t, Same(x, kLog2OfE)));
  const V p = ExpOfRest(RestOf(t, ToFloat(n)));
  return SelectLess(x, least, Same(x, 0.0f), BitCast(AddI(BitCast(p), ShiftLeft<23>(n))));
}

// x / (1 + e^-x).
template <class V>
inline V SiluOf(V x) {
  return Div(x, Add(Same(x, 1.0f), ExpOf(Mul(x, Same(x, -1.0f)))));
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_EXP_IMPL_H_
