// SPDX-License-Identifier: Apache-2.0
// How fast products compute on weights that stay in the caches.
//
//   const double call = TimeCall(runner.ops());
//   rates.products = MeasureProducts(runner.ops(), MatricesOf(weights), peaks.l3_bytes, call);
#ifndef SETU_COMMON_ROOFLINE_MEASURE_PRODUCTS_H_
#define SETU_COMMON_ROOFLINE_MEASURE_PRODUCTS_H_

#include <cstdint>
#include <vector>

#include "common/roofline/kernel_rates.h"
#include "kernels/ops.h"

namespace setu::roofline {

// Seconds of a call that has next to nothing to do: handing it to the threads and waiting for them.
double TimeCall(kernels::Ops& ops);

// Without their calls: computing alone. One for each type among the matrices, at least one of them,
// and for Q8_0 and Q4_0, which an advice may be about. Rows that would take too long or too much
// memory are not tried: seconds then grow with them.
std::vector<KernelRates::Product> MeasureProducts(
    kernels::Ops& ops, const std::vector<const kernels::PackedMatrix*>& matrices, int64_t l3_bytes,
    double call);

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_MEASURE_PRODUCTS_H_
