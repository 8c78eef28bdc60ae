// SPDX-License-Identifier: Apache-2.0
#include "kernels/math.h"

#include <math.h>

#include <bit>
#include <cstdint>
#include <limits>

namespace setu::kernels {
namespace {

// One lane of the names that exp_impl.h uses.
inline float Same(float, float c) { return c; }
inline float Mul(float a, float b) { return a * b; }
inline float Fma(float a, float b, float c) { return fmaf(a, b, c); }
inline float Max(float a, float b) { return a > b ? a : b; }
inline float Min(float a, float b) { return a < b ? a : b; }
inline float SelectLess(float a, float b, float yes, float no) { return a < b ? yes : no; }
inline int32_t RoundToInt(float a) {
  return static_cast<int32_t>(std::bit_cast<uint32_t>(a + 12582912.0f) -
                              std::bit_cast<uint32_t>(12582912.0f));
}
inline float ToFloat(int32_t a) { return static_cast<float>(a); }
inline int32_t SubI(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}
template <int kBits>
inline int32_t ShiftRightSigned(int32_t a) {
  return a >> kBits;
}
inline float PowerOf2(int32_t n) {
  return std::bit_cast<float>((static_cast<uint32_t>(n) + 127u) << 23);
}

}  // namespace
}  // namespace setu::kernels

#include "kernels/cpu/exp_impl.h"

namespace setu::kernels {
namespace {

constexpr double kLn2High = 0x1.62e42fefa39efp-1;
constexpr double kLn2Low = 0x1.abc9e3b39803fp-56;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// To nearest even; |x| below 2^51.
inline double RoundToWhole(double x) { return x + 0x1.8p52 - 0x1.8p52; }

inline double TwoTo(int64_t n) {
  return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52);
}

// Taylor polynomials about 0 in z = r * r, |r| <= pi / 4: sin(r) / r and cos(r).
double SinOverR(double z) {
  double p = 0.0, factorial = 355687428096000.0;  // 17!
  for (int k = 17; k >= 1; k -= 2) {
    p = fma(p, -z, 1.0 / factorial);
    if (k > 1) factorial /= static_cast<double>(k) * (k - 1);
  }
  return p;
}
double CosOfR(double z) {
  double p = 0.0, factorial = 6402373705728000.0;  // 18!
  for (int k = 18; k >= 0; k -= 2) {
    p = fma(p, -z, 1.0 / factorial);
    if (k > 0) factorial /= static_cast<double>(k) * (k - 1);
  }
  return p;
}

// sin(x + quarters * pi / 2): x = n * pi / 2 + r, pi / 2 in three parts (Cody and Waite).
double SinFrom(double x, int64_t quarters) {
  const double n = RoundToWhole(x * 0x1.45f306dc9c883p-1);
  double r = fma(n, -0x1.921fb54442d18p+0, x);
  r = fma(n, -0x1.1a62633145c07p-54, r);
  r = fma(n, 0x1.f1976b7ed8fbcp-110, r);
  const int64_t quadrant = (static_cast<int64_t>(n) + quarters) & 3;
  const double value = (quadrant & 1) != 0 ? CosOfR(r * r) : r * SinOverR(r * r);
  return (quadrant & 2) != 0 ? -value : value;
}

}  // namespace

float Exp(float x) { return ExpOf(x); }

double Exp(double x) {
  if (x < -708.0) return 0.0;
  if (x > 709.78) return kInfinity;
  if (!(x == x)) return x;
  const double n = RoundToWhole(x * 0x1.71547652b82fep+0);
  const double r = fma(n, -kLn2Low, fma(n, -kLn2High, x));
  double p = 1.0, factorial = 6227020800.0;  // 13!; the next term is below 2^-57
  p = 1.0 / factorial;
  for (int k = 13; k >= 1; --k) {
    factorial /= k;
    p = fma(p, r, 1.0 / factorial);
  }
  const int64_t whole = static_cast<int64_t>(n);
  return p * TwoTo(whole / 2) * TwoTo(whole - whole / 2);
}

// log x = e ln 2 + 2 atanh(s), s = (m - 1) / (m + 1), m = x / 2^e within [sqrt(1/2), sqrt(2)).
double Log(double x) {
  if (x == 0.0) return -kInfinity;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  constexpr uint64_t kMantissa = (uint64_t{1} << 52) - 1;
  double m = std::bit_cast<double>((bits & kMantissa) | std::bit_cast<uint64_t>(1.0));
  double e = static_cast<double>(static_cast<int64_t>(bits >> 52) - 1023);
  if (m >= 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    e += 1.0;
  }
  const double f = m - 1.0;
  const double s = f / (m + 1.0);
  const double z = s * s;
  double p = 0.0;
  for (int k = 23; k >= 3; k -= 2) p = fma(p, z, 2.0 / k);
  // 2 s = f - s f exactly, which keeps the digits of f.
  const double tail = s * fma(p, z, -f);
  return fma(e, kLn2High, f + (tail + e * kLn2Low));
}

double Sin(double x) { return SinFrom(x, 0); }
double Cos(double x) { return SinFrom(x, 1); }
double Pow(double base, double exponent) { return Exp(exponent * Log(base)); }

}  // namespace setu::kernels
