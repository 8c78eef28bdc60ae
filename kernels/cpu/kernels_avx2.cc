// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd_avx2.h"
// Then the ops over its lanes.
#include "kernels/cpu/table_impl.h"

namespace setu::kernels {

const KernelTable& Avx2Kernels() {
  static constexpr KernelTable kTable = TableOf("avx2");
  return kTable;
}

}  // namespace setu::kernels
