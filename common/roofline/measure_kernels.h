// SPDX-License-Identifier: Apache-2.0
// Times our kernels on a loaded model: its own weights, layers and buffers, and memory of their own
// for keys and values. The pool stays untouched.
//
//   const KernelRates rates = MeasureKernels(runner, peaks.l3_bytes);
#ifndef SETU_COMMON_ROOFLINE_MEASURE_KERNELS_H_
#define SETU_COMMON_ROOFLINE_MEASURE_KERNELS_H_

#include <cstdint>

#include "common/engine/model_runner.h"
#include "common/roofline/kernel_rates.h"

namespace setu::roofline {

// At load: some ten milliseconds with small weights, half a second with large ones, and memory as
// one step takes. Rows with which a layer would take too long are not tried: its products in the
// caches say how it grows.
KernelRates MeasureKernels(engine::ModelRunner& runner, int64_t l3_bytes);

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_MEASURE_KERNELS_H_
