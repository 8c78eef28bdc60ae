// SPDX-License-Identifier: Apache-2.0
// AVX-512, and AMX for the products of both paths and the attention of the bf16-tile path.
#include "kernels/cpu/simd_avx512.h"
// Then the ops over its lanes.
#include "kernels/cpu/amx_tiles_impl.h"
#include "kernels/cpu/attention_tiles_impl.h"
#include "kernels/cpu/linear_int8_tiles_impl.h"
#include "kernels/cpu/table_impl.h"
#include "kernels/cpu/tile_table_impl.h"

namespace setu::kernels {

const KernelTable& AmxKernels() {
  static constexpr KernelTable kTable =
      WithInt8Tiles(WithAttentionTiles<AmxTiles>(WithTiles<AmxTiles>(TableOf("amx"))));
  return kTable;
}

}  // namespace setu::kernels
