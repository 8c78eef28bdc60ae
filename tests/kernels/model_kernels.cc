// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/model_kernels.h"

#include "kernels/cpu/simd_portable.h"
// Then what is over its lanes.
#include "kernels/cpu/attention_tiles_impl.h"
#include "kernels/cpu/tile_table_impl.h"
#include "tests/kernels/model_tiles.h"

namespace setu::kernels {

const KernelTable& ModelKernels() {
  static const KernelTable kTable =
      WithAttentionTiles<ModelTiles>(WithTiles<ModelTiles>(PortableKernels()));
  return kTable;
}

}  // namespace setu::kernels
