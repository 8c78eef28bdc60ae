// SPDX-License-Identifier: Apache-2.0
// Types of GGUF metadata values, by their numbers in a file
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
#ifndef SETU_COMMON_MODEL_GGUF_VALUE_TYPE_H_
#define SETU_COMMON_MODEL_GGUF_VALUE_TYPE_H_

#include <cstdint>

namespace setu::model {

enum class GgufValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_GGUF_VALUE_TYPE_H_
