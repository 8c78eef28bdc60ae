// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd_avx512.h"
// Then what is over its lanes.
#include "kernels/cpu/amx_tiles_impl.h"
#include "kernels/cpu/linear_tiles_impl.h"
#include "tests/kernels/model_kernels.h"
#include "tests/kernels/model_tiles.h"

namespace setu::kernels {
namespace {

class Tiles : public ModelTiles {
 public:
  using ModelTiles::ModelTiles;
  static __m512i Join(__m512 even, __m512 odd) { return AmxTiles::Join(even, odd); }
};

}  // namespace

const KernelTable& ModelKernelsAvx512() {
  static const KernelTable kTable = WithTiles<Tiles>(Avx512Kernels());
  return kTable;
}

}  // namespace setu::kernels
