// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd_avx512.h"
// Then what is over its lanes.
#include "kernels/cpu/amx_tiles_impl.h"
#include "kernels/cpu/attention_tiles_impl.h"
#include "kernels/cpu/tile_table_impl.h"
#include "tests/kernels/model_kernels.h"
#include "tests/kernels/model_tiles.h"

namespace setu::kernels {
namespace {

class Tiles : public ModelTiles {
 public:
  using ModelTiles::ModelTiles;
  static __m512i Join(__m512 low, __m512 high) { return AmxTiles::Join(low, high); }
  static __m512i JoinAway(__m512 even, __m512 odd) { return AmxTiles::JoinAway(even, odd); }
  static __m512i Lookup(__m512i table, __m512i index) { return AmxTiles::Lookup(table, index); }
  template <int kBits>
  static __m512i ShiftWords(__m512i words) {
    return AmxTiles::ShiftWords<kBits>(words);
  }
  static __m512 Halves(float low, float high) { return AmxTiles::Halves(low, high); }
  static void Transpose(const uint32_t* from, uint32_t* to) { AmxTiles::Transpose(from, to); }
};

}  // namespace

const KernelTable& ModelKernelsAvx512() {
  static const KernelTable kTable = WithAttentionTiles<Tiles>(WithTiles<Tiles>(Avx512Kernels()));
  return kTable;
}

}  // namespace setu::kernels
