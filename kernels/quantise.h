// SPDX-License-Identifier: Apache-2.0
// f32 into the weight types of a file: the inverse of what Ops::Pack reads. The rounding is that of
// GGML's reference (quantize_row_*_ref in ggml-quants.c), except that a group of a K-quant takes
// its scale from its range, without the reference's search for a better one.
//
//   std::vector<std::byte> row(RowBytes(WeightType::kQ8_0, cols));
//   QuantiseRow(WeightType::kQ8_0, x, cols, row.data());
//
// Threads may quantise different rows at once; nothing is kept and nothing allocated.
#ifndef SETU_KERNELS_QUANTISE_H_
#define SETU_KERNELS_QUANTISE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace setu::kernels {

// x[cols] to out[RowBytes(type, cols)]; cols is a multiple of BlockValues(type). A NaN or an
// infinity spoils its own block and no other.
void QuantiseRow(WeightType type, const float* x, int64_t cols, std::byte* out);

}  // namespace setu::kernels

#endif  // SETU_KERNELS_QUANTISE_H_
