// SPDX-License-Identifier: Apache-2.0
// Makes GGUF files: right ones, and wrong ones for tests, since every field is open and nothing
// that is set here is checked. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
//
//   GgufWriter writer;
//   writer.Set("general.architecture", "llama").Set("llama.block_count", uint32_t{2});
//   writer.Add("output_norm.weight", kernels::WeightType::kF32, {64}, bytes);
//   std::string file = writer.Bytes();
//
// A file that does not fit memory: reserve tensors instead, write Header() and then each tensor's
// bytes where it lies.
//
//   writer.Reserve("token_embd.weight", kernels::WeightType::kQ8_0, {2048, 49152});
//   pwrite(fd, row, bytes, writer.Header().size() + writer.Offsets()[0]);
#ifndef SETU_COMMON_MODEL_GGUF_WRITER_H_
#define SETU_COMMON_MODEL_GGUF_WRITER_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"

namespace setu::model {

class GgufWriter {
 public:
  struct Metadata {
    std::string key;
    uint32_t type = 0;    // GGUF's number of the value type
    std::string payload;  // the value as it stands in the file
  };
  struct Tensor {
    std::string name;
    std::vector<uint64_t> shape;  // innermost first
    uint32_t type = 0;            // GGML's number of the weight type
    std::string data;
    std::optional<uint64_t> offset;  // absent: behind the tensor before it
    uint64_t reserved = 0;           // bytes of a tensor whose data its owner writes

    uint64_t bytes() const { return std::max<uint64_t>(reserved, data.size()); }
  };

  // Replaces the value of `key`, or adds it at the end.
  GgufWriter& Set(std::string_view key, uint8_t value);
  GgufWriter& Set(std::string_view key, int32_t value);
  GgufWriter& Set(std::string_view key, uint32_t value);
  GgufWriter& Set(std::string_view key, int64_t value);
  GgufWriter& Set(std::string_view key, uint64_t value);
  GgufWriter& Set(std::string_view key, float value);
  GgufWriter& Set(std::string_view key, double value);
  GgufWriter& Set(std::string_view key, bool value);
  GgufWriter& Set(std::string_view key, std::string_view value);
  GgufWriter& Set(std::string_view key, const char* value);
  GgufWriter& Set(std::string_view key, const std::vector<std::string>& values);
  GgufWriter& Set(std::string_view key, const std::vector<float>& values);
  GgufWriter& Set(std::string_view key, const std::vector<int32_t>& values);
  GgufWriter& Set(std::string_view key, const std::vector<uint32_t>& values);
  GgufWriter& SetRaw(std::string_view key, uint32_t type, std::string payload);
  GgufWriter& Remove(std::string_view key);

  GgufWriter& Add(std::string_view name, kernels::WeightType type,
                  const std::vector<uint64_t>& shape, std::string data);
  // Of whole blocks; `data` stays empty.
  GgufWriter& Reserve(std::string_view name, kernels::WeightType type,
                      const std::vector<uint64_t>& shape);
  // The tensor of that name, which must be there.
  Tensor& Find(std::string_view name);
  GgufWriter& RemoveTensor(std::string_view name);

  // The whole file, of tensors that have their data.
  std::string Bytes() const;
  // All before the data, padded to its alignment.
  std::string Header() const;
  // Where each tensor's data lies, from the end of the header.
  std::vector<uint64_t> Offsets() const;

  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t alignment = 32;  // of the layout written; the metadata key is the caller's to set
  std::optional<uint64_t> tensor_count, metadata_count;  // absent: the true ones
  std::vector<Metadata> metadata;
  std::vector<Tensor> tensors;
};

// Pieces of payloads.
template <typename T>
std::string RawBytes(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
}
std::string RawString(std::string_view text);  // length, then text

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_GGUF_WRITER_H_
