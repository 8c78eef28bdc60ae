// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd_portable.h"
// Then the ops over its lanes.
#include "kernels/cpu/table_impl.h"

namespace setu::kernels {

const KernelTable& PortableKernels() {
  static constexpr KernelTable kTable = TableOf("portable");
  return kTable;
}

}  // namespace setu::kernels
