// SPDX-License-Identifier: Apache-2.0
// Makes GGUF files for tests, right ones and wrong ones: every field is open, and nothing that is
// set here is checked. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
//
//   GgufWriter writer;
//   writer.Set("general.architecture", "llama").Set("llama.block_count", uint32_t{2});
//   writer.Add("output_norm.weight", kernels::WeightType::kF32, {64}, bytes);
//   writer.tensors[0].offset = 1;                     // not aligned: a hostile file
//   std::string path = dir.Write("model.gguf", writer.Bytes());
#ifndef SETU_TESTS_SUPPORT_GGUF_WRITER_H_
#define SETU_TESTS_SUPPORT_GGUF_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"

namespace setu::test {

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
  // The tensor of that name, which must be there.
  Tensor& Find(std::string_view name);
  GgufWriter& RemoveTensor(std::string_view name);

  std::string Bytes() const;
  size_t HeaderBytes() const { return Header().size(); }  // up to the padding before the data

  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t alignment = 32;  // of the layout written; the metadata key is the test's to set
  std::optional<uint64_t> tensor_count, metadata_count;  // absent: the true ones
  std::vector<Metadata> metadata;
  std::vector<Tensor> tensors;

 private:
  std::string Header() const;
};

// Pieces of payloads.
template <typename T>
std::string RawBytes(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
}
std::string RawString(std::string_view text);  // length, then text

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_GGUF_WRITER_H_
