// SPDX-License-Identifier: Apache-2.0
// A GGUF image is refused by field, or its tensors lie in it, aligned and apart, and what was read
// can be written and read again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "common/base/check.h"
#include "common/model/gguf_parser.h"
#include "common/model/gguf_writer.h"
#include "kernels/tensor.h"

namespace setu::model {
namespace {

constexpr uint64_t kMostAlignment = 4096;  // of a file that is written again: it is padded by that

absl::StatusOr<GgufContents> Parse(std::string_view bytes) {
  return ParseGguf(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

uint64_t Alignment(const GgufContents& contents) {
  const auto found = contents.metadata.find("general.alignment");
  return found == contents.metadata.end() ? 32 : std::get<uint64_t>(found->second);
}

void CheckTensors(const GgufContents& contents, std::string_view file) {
  const auto* begin = reinterpret_cast<const std::byte*>(file.data());
  std::vector<const GgufTensor*> order;
  for (const GgufTensor& tensor : contents.tensors) {
    const auto place = static_cast<uint64_t>(tensor.data - begin);
    SETU_CHECK(place <= file.size(), "a tensor begins inside the file");
    SETU_CHECK(tensor.bytes > 0, "a tensor has bytes");
    SETU_CHECK(static_cast<uint64_t>(tensor.bytes) <= file.size() - place,
               "a tensor ends inside the file");
    SETU_CHECK(place % Alignment(contents) == 0, "a tensor is aligned");
    SETU_CHECK(tensor.bytes == tensor.rows() * kernels::RowBytes(tensor.type, tensor.cols()),
               "a tensor's bytes are those of its shape");
    SETU_CHECK(&contents.tensors[contents.tensor_index.at(tensor.name)] == &tensor,
               "a tensor is found by its name");
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->data < b->data; });
  for (size_t i = 1; i < order.size(); ++i) {
    SETU_CHECK(order[i - 1]->data + order[i - 1]->bytes <= order[i]->data, "tensors lie apart");
  }
}

std::string Write(const GgufContents& contents) {
  GgufWriter writer;
  writer.alignment = Alignment(contents);
  for (const auto& [key, value] : contents.metadata) {
    std::visit([&, &key = key](const auto& held) { writer.Set(key, held); }, value);
  }
  for (const GgufTensor& tensor : contents.tensors) {
    writer.Add(tensor.name, tensor.type, {tensor.shape.begin(), tensor.shape.end()},
               {reinterpret_cast<const char*>(tensor.data), static_cast<size_t>(tensor.bytes)});
  }
  return writer.Bytes();
}

void CheckImage(std::string_view file) {
  const auto contents = Parse(file);
  if (!contents.ok()) {
    SETU_CHECK(contents.status().code() == absl::StatusCode::kInvalidArgument,
               "a wrong file is INVALID_ARGUMENT");
    SETU_CHECK(contents.status().message().find(": ") != absl::string_view::npos,
               "an error names its field");
    return;
  }
  CheckTensors(*contents, file);
  if (Alignment(*contents) > kMostAlignment) return;
  const std::string written = Write(*contents);
  const auto again = Parse(written);
  SETU_CHECK(again.ok(), "what was read can be written");
  SETU_CHECK(Write(*again) == written, "what was written reads the same");
}

}  // namespace
}  // namespace setu::model

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  setu::model::CheckImage({reinterpret_cast<const char*>(data), size});
  return 0;
}
