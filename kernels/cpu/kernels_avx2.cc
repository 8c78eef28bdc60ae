// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd_avx2.h"
// Then the ops over its lanes.
#include "kernels/cpu/attention_impl.h"
#include "kernels/cpu/linear_impl.h"
#include "kernels/cpu/probe_impl.h"
#include "kernels/cpu/rows_impl.h"

namespace setu::kernels {

const KernelTable& Avx2Kernels() {
  static constexpr KernelTable kTable = {"avx2",    LinearF32, LinearInt8, Quantise, Embed,
                                         RmsNorm,   Rope,      SiluMul,    ExpLanes, StoreKv,
                                         Attention, ProbeF32,  ProbeInt8,  SumWords};
  return kTable;
}

}  // namespace setu::kernels
