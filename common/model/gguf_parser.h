// SPDX-License-Identifier: Apache-2.0
// Reads a GGUF image (version 2 or 3, little-endian) out of memory. Pure: bytes in, contents or an
// error out, so that tests and fuzzers feed it anything.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
//
//   SETU_ASSIGN_OR_RETURN(GgufContents contents, ParseGguf(bytes));
//
// Metadata is copied; tensors point into `file`, which must outlive them. What is kept is bounded
// by a small multiple of the file's size, whatever its counts claim.
#ifndef SETU_COMMON_MODEL_GGUF_PARSER_H_
#define SETU_COMMON_MODEL_GGUF_PARSER_H_

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/gguf.h"

namespace setu::model {

struct GgufContents {
  std::map<std::string, GgufFile::Value, std::less<>> metadata;
  std::vector<GgufTensor> tensors;                          // in the file's order
  std::map<std::string, size_t, std::less<>> tensor_index;  // name -> place in `tensors`
};

// INVALID_ARGUMENT names the field that is wrong, its value and what it must be.
absl::StatusOr<GgufContents> ParseGguf(std::span<const std::byte> file);

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_GGUF_PARSER_H_
