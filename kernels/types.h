// SPDX-License-Identifier: Apache-2.0
// Names of formats and kinds. Only enumerations: files built for one ISA include this header, and
// an inline function here could leave an AVX-512 copy for every machine.
#ifndef SETU_KERNELS_TYPES_H_
#define SETU_KERNELS_TYPES_H_

#include <stdint.h>

namespace setu::kernels {

// Types of weights as they stand in a file; block layouts are those of GGML
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Values equal GGML's type numbers.
enum class WeightType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

// What K and V are in a block. kInt8: x = scale * q, |q| <= 127, with a scale per token and head.
enum class KvType : uint8_t { kF32, kF16, kBF16, kInt8 };

// Where a token's values are in its head's K or V of a block, in values: that of dim d at
// first + d / together * stride + d % together.
struct KvPlace {
  int64_t first, together, stride;
};

// Which values of a head turn together: (2i, 2i+1), or (i, i + rotary_dim / 2).
enum class RopeKind : uint8_t { kInterleaved, kHalves };

}  // namespace setu::kernels

#endif  // SETU_KERNELS_TYPES_H_
