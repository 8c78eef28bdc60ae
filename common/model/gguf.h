// SPDX-License-Identifier: Apache-2.0
// A GGUF file (version 2 or 3), mapped. The file is untrusted: every count, offset and size is
// checked against the file before use, and an error names path and field ("load failed: m.gguf:
// tensor 'x': offset ..."). Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
//
// The file must not shrink while it is open: reading a page that is gone ends the process
// (common/base/mapped_pages.h). Replace a model by renaming a new file over it, never by writing
// into it.
//
//   SETU_ASSIGN_OR_RETURN(auto file, GgufFile::Open("model.gguf"));
//   SETU_ASSIGN_OR_RETURN(uint32_t layers, file->Uint32("llama.block_count"));
//   SETU_ASSIGN_OR_RETURN(GgufTensor t, file->Tensor("token_embd.weight"));
#ifndef SETU_COMMON_MODEL_GGUF_H_
#define SETU_COMMON_MODEL_GGUF_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/tensor.h"

namespace setu::model {

struct GgufTensor {
  std::string name;
  kernels::WeightType type = kernels::WeightType::kF32;
  // GGML order, innermost first: a matrix of `rows` outputs and `cols` inputs is {cols, rows}.
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;  // inside the mapping
  int64_t bytes = 0;

  int64_t cols() const { return shape.empty() ? 0 : shape[0]; }
  int64_t rows() const;  // product of the other dimensions
  kernels::RawMatrix matrix() const { return {type, rows(), cols(), data}; }
};

// What tells a file from others, and from itself before it was changed, without reading all of it.
struct GgufIdentity {
  int64_t bytes = 0;
  int64_t modified_ns = 0;     // since 1970
  uint64_t header_digest = 0;  // of all before the first tensor's bytes
};

class GgufFile {
 public:
  using Strings = std::vector<std::string>;  // copied: outlives the mapping
  using Value = std::variant<uint64_t, int64_t, double, bool, std::string, Strings,
                             std::vector<float>, std::vector<int32_t>>;

  static absl::StatusOr<std::unique_ptr<GgufFile>> Open(const std::string& path);
  ~GgufFile();
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  const std::string& path() const { return path_; }
  const GgufIdentity& identity() const { return identity_; }
  int64_t file_bytes() const { return identity_.bytes; }
  const std::map<std::string, Value, std::less<>>& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

  // NOT_FOUND where the key is missing, INVALID_ARGUMENT where it has another type; both name it.
  absl::StatusOr<uint32_t> Uint32(std::string_view key) const;
  absl::StatusOr<float> Float(std::string_view key) const;
  absl::StatusOr<bool> Bool(std::string_view key) const;
  absl::StatusOr<std::string> String(std::string_view key) const;
  // Views into metadata(); live as long as this file.
  absl::StatusOr<const Strings*> StringArray(std::string_view key) const;
  absl::StatusOr<const std::vector<float>*> FloatArray(std::string_view key) const;
  absl::StatusOr<const std::vector<int32_t>*> Int32Array(std::string_view key) const;
  bool Has(std::string_view key) const;
  absl::StatusOr<GgufTensor> Tensor(std::string_view name) const;
  bool HasTensor(std::string_view name) const;
  // Tells the kernel that a tensor's pages were read and need not stay resident.
  void Release(const GgufTensor& tensor) const;
  // INVALID_ARGUMENT "load failed: PATH: problem": what is wrong with this file.
  absl::Status Invalid(const std::string& problem) const;

 private:
  GgufFile() = default;
  absl::StatusOr<const Value*> Find(std::string_view key) const;
  template <typename T>
  absl::StatusOr<const T*> FindAs(std::string_view key, const std::string& wanted) const;
  void ReleasePages(const std::byte* begin, size_t bytes) const;
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  GgufIdentity identity_;
  std::map<std::string, Value, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t, std::less<>> tensor_index_;
};

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_GGUF_H_
