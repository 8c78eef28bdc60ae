// SPDX-License-Identifier: Apache-2.0
// Views over memory that others own. Ops take views and sizes; they know no model.
#ifndef SETU_KERNELS_TENSOR_H_
#define SETU_KERNELS_TENSOR_H_

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace setu::kernels {

constexpr size_t KvTypeBytes(KvType type) {
  return type == KvType::kF32 ? 4 : type == KvType::kInt8 ? 1 : 2;
}
// Bytes of K, or of V, of one head in a block: its values, then of int8 a float scale per token.
constexpr size_t KvHeadBytes(KvType type, int64_t head_dim, int64_t block_tokens) {
  const size_t scale = type == KvType::kInt8 ? sizeof(float) : 0;
  const int64_t unpaired = type == KvType::kBF16 ? head_dim % 2 : 0;
  return static_cast<size_t>(block_tokens) * ((head_dim + unpaired) * KvTypeBytes(type) + scale);
}

// As --kv-dtype and the names of numeric paths have it: "f32", "f16", "bf16", "int8".
const char* KvTypeName(KvType type);

// Rows of f32, row-major; `stride` in values, at least cols.
struct Matrix {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
  float* Row(int64_t r) const { return data + r * stride; }
};

struct ConstMatrix {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
  ConstMatrix() = default;
  ConstMatrix(const float* d, int64_t r, int64_t c, int64_t s)
      : data(d), rows(r), cols(c), stride(s) {}
  ConstMatrix(const Matrix& m)  // Implicit: a view of a view.
      : data(m.data), rows(m.rows), cols(m.cols), stride(m.stride) {}
  const float* Row(int64_t r) const { return data + r * stride; }
};

// A matrix as it stands in a file: `rows` outputs of `cols` inputs, rows one after another.
struct RawMatrix {
  WeightType type = WeightType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  const std::byte* data = nullptr;  // RowBytes(type, cols) * rows
};

inline constexpr WeightType kWeightTypes[] = {
    WeightType::kF32,  WeightType::kF16,  WeightType::kBF16, WeightType::kQ4_0,
    WeightType::kQ4_1, WeightType::kQ5_0, WeightType::kQ5_1, WeightType::kQ8_0,
    WeightType::kQ4_K, WeightType::kQ5_K, WeightType::kQ6_K};

// Values per block and bytes per block of a type; cols must be a multiple of the former.
int64_t BlockValues(WeightType type);
int64_t BlockBytes(WeightType type);
inline int64_t RowBytes(WeightType type, int64_t cols) {
  return cols / BlockValues(type) * BlockBytes(type);
}
const char* WeightTypeName(WeightType type);

}  // namespace setu::kernels

#endif  // SETU_KERNELS_TENSOR_H_
