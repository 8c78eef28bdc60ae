// SPDX-License-Identifier: Apache-2.0
// Elementary functions with the same bits on every machine: fixed sequences of IEEE operations and
// fma, no math library behind them (its results differ by version and CPU). For tables made at load
// and for sampling; the kernels use the same Exp on sixteen lanes (cpu/exp_impl.h).
//
//   double inverse_frequency = kernels::Pow(theta, -2.0 * i / rotary_dim);
//   table[i] = static_cast<float>(kernels::Cos(position * inverse_frequency));
#ifndef SETU_KERNELS_MATH_H_
#define SETU_KERNELS_MATH_H_

#include <cstdint>

namespace setu::kernels {

// Within 2 ulp. Below -87 it is 0, above 88.72283 infinity; Exp(0) is 1, NaN stays NaN.
float Exp(float x);
// out[i] = Exp(x[i]), the same bits, sixteen at a time by the best ISA there is; out may be x.
void ExpRow(const float* x, int64_t count, float* out);
// Within 2 ulp. Below -708 it is 0, above 709.78 infinity.
double Exp(double x);
// Natural logarithm of a finite x > 0 that is not subnormal, within 2 ulp; Log(0) is -infinity.
double Log(double x);
// Radians; absolute error below 4e-16 for |x| < 2^30.
double Sin(double x);
double Cos(double x);
// base > 0; relative error below 4e-16 * (1 + |exponent * Log(base)|).
double Pow(double base, double exponent);

}  // namespace setu::kernels

#endif  // SETU_KERNELS_MATH_H_
