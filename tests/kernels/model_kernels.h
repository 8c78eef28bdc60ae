// SPDX-License-Identifier: Apache-2.0
// Kernels whose bf16-tile products and attention run on the model of a tile unit.
#ifndef SETU_TESTS_KERNELS_MODEL_KERNELS_H_
#define SETU_TESTS_KERNELS_MODEL_KERNELS_H_

#include "kernels/cpu/kernel_table.h"

namespace setu::kernels {

// Over plain lanes.
const KernelTable& ModelKernels();
// Over those of kernels_amx.cc, for a CPU with AVX512-BF16: weights are expanded as for AMX.
const KernelTable& ModelKernelsAvx512();

}  // namespace setu::kernels

#endif  // SETU_TESTS_KERNELS_MODEL_KERNELS_H_
