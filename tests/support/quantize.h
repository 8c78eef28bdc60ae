// SPDX-License-Identifier: Apache-2.0
// f32 values into a file's weight types, the plain way: enough for tests, not for good models.
#ifndef SETU_TESTS_SUPPORT_QUANTIZE_H_
#define SETU_TESTS_SUPPORT_QUANTIZE_H_

#include <span>
#include <string>

#include "kernels/tensor.h"

namespace setu::test {

// The bytes of `values` (whole blocks) as `type`: F32, F16, BF16, Q4_0, Q4_1 or Q8_0.
std::string Quantize(std::span<const float> values, kernels::WeightType type);

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_QUANTIZE_H_
