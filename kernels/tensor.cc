// SPDX-License-Identifier: Apache-2.0
#include "kernels/tensor.h"

namespace setu::kernels {
namespace {

struct Layout {
  int64_t values;  // per block
  int64_t bytes;   // per block
  const char* name;
};

// Sizes as ggml-common.h lays the blocks out: scales first, then 32 or 256 quantised values.
constexpr Layout LayoutOf(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return {1, 4, "F32"};
    case WeightType::kF16:
      return {1, 2, "F16"};
    case WeightType::kBF16:
      return {1, 2, "BF16"};
    case WeightType::kQ4_0:
      return {32, 2 + 16, "Q4_0"};
    case WeightType::kQ4_1:
      return {32, 4 + 16, "Q4_1"};
    case WeightType::kQ5_0:
      return {32, 2 + 4 + 16, "Q5_0"};
    case WeightType::kQ5_1:
      return {32, 4 + 4 + 16, "Q5_1"};
    case WeightType::kQ8_0:
      return {32, 2 + 32, "Q8_0"};
    case WeightType::kQ4_K:
      return {256, 4 + 12 + 128, "Q4_K"};
    case WeightType::kQ5_K:
      return {256, 4 + 12 + 32 + 128, "Q5_K"};
    case WeightType::kQ6_K:
      return {256, 128 + 64 + 16 + 2, "Q6_K"};
  }
  return {1, 0, "unknown"};
}

}  // namespace

int64_t BlockValues(WeightType type) { return LayoutOf(type).values; }
int64_t BlockBytes(WeightType type) { return LayoutOf(type).bytes; }
const char* WeightTypeName(WeightType type) { return LayoutOf(type).name; }

const char* KvTypeName(KvType type) {
  switch (type) {
    case KvType::kF32:
      return "f32";
    case KvType::kF16:
      return "f16";
    case KvType::kBF16:
      return "bf16";
    case KvType::kInt8:
      return "int8";
  }
  return "unknown";
}

}  // namespace setu::kernels
