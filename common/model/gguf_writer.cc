// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf_writer.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/model/gguf_value_type.h"

namespace setu::model {
namespace {

using enum GgufValueType;

constexpr uint32_t Code(GgufValueType type) { return static_cast<uint32_t>(type); }

template <typename T>
std::string RawArray(uint32_t type, const std::vector<T>& values) {
  std::string payload = RawBytes(type) + RawBytes(uint64_t{values.size()});
  for (const T& value : values) {
    if constexpr (std::is_same_v<T, std::string>) {
      payload += RawString(value);
    } else {
      payload += RawBytes(value);
    }
  }
  return payload;
}

void Pad(std::string* bytes, uint64_t alignment) {
  bytes->resize((bytes->size() + alignment - 1) / alignment * alignment, '\0');
}

}  // namespace

std::string RawString(std::string_view text) {
  return RawBytes(uint64_t{text.size()}) + std::string(text);
}

GgufWriter& GgufWriter::SetRaw(std::string_view key, uint32_t type, std::string payload) {
  const auto same = std::find_if(metadata.begin(), metadata.end(),
                                 [&](const Metadata& entry) { return entry.key == key; });
  if (same == metadata.end()) {
    metadata.push_back({std::string(key), type, std::move(payload)});
  } else {
    *same = {std::string(key), type, std::move(payload)};
  }
  return *this;
}

GgufWriter& GgufWriter::Set(std::string_view key, uint8_t value) {
  return SetRaw(key, Code(kUint8), RawBytes(value));
}
GgufWriter& GgufWriter::Set(std::string_view key, int32_t value) {
  return SetRaw(key, Code(kInt32), RawBytes(value));
}
GgufWriter& GgufWriter::Set(std::string_view key, uint32_t value) {
  return SetRaw(key, Code(kUint32), RawBytes(value));
}
GgufWriter& GgufWriter::Set(std::string_view key, int64_t value) {
  return SetRaw(key, Code(kInt64), RawBytes(value));
}
GgufWriter& GgufWriter::Set(std::string_view key, uint64_t value) {
  return SetRaw(key, Code(kUint64), RawBytes(value));
}
GgufWriter& GgufWriter::Set(std::string_view key, float value) {
  return SetRaw(key, Code(kFloat32), RawBytes(value));
}
GgufWriter& GgufWriter::Set(std::string_view key, double value) {
  return SetRaw(key, Code(kFloat64), RawBytes(value));
}
GgufWriter& GgufWriter::Set(std::string_view key, bool value) {
  return SetRaw(key, Code(kBool), RawBytes(static_cast<uint8_t>(value)));
}
GgufWriter& GgufWriter::Set(std::string_view key, std::string_view value) {
  return SetRaw(key, Code(kString), RawString(value));
}
GgufWriter& GgufWriter::Set(std::string_view key, const char* value) {
  return Set(key, std::string_view(value));
}
GgufWriter& GgufWriter::Set(std::string_view key, const std::vector<std::string>& values) {
  return SetRaw(key, Code(kArray), RawArray(Code(kString), values));
}
GgufWriter& GgufWriter::Set(std::string_view key, const std::vector<float>& values) {
  return SetRaw(key, Code(kArray), RawArray(Code(kFloat32), values));
}
GgufWriter& GgufWriter::Set(std::string_view key, const std::vector<int32_t>& values) {
  return SetRaw(key, Code(kArray), RawArray(Code(kInt32), values));
}
GgufWriter& GgufWriter::Set(std::string_view key, const std::vector<uint32_t>& values) {
  return SetRaw(key, Code(kArray), RawArray(Code(kUint32), values));
}

GgufWriter& GgufWriter::Remove(std::string_view key) {
  std::erase_if(metadata, [&](const Metadata& entry) { return entry.key == key; });
  return *this;
}

GgufWriter& GgufWriter::Add(std::string_view name, kernels::WeightType type,
                            const std::vector<uint64_t>& shape, std::string data) {
  tensors.push_back(
      {std::string(name), shape, static_cast<uint32_t>(type), std::move(data), std::nullopt});
  return *this;
}

GgufWriter& GgufWriter::Reserve(std::string_view name, kernels::WeightType type,
                                const std::vector<uint64_t>& shape) {
  uint64_t values = 1;
  for (const uint64_t size : shape) values *= size;
  Add(name, type, shape, {});
  tensors.back().reserved =
      static_cast<uint64_t>(kernels::RowBytes(type, static_cast<int64_t>(values)));
  return *this;
}

GgufWriter::Tensor& GgufWriter::Find(std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const Tensor& tensor) { return tensor.name == name; });
  SETU_CHECK(found != tensors.end(), "the tensor that is named was added");
  return *found;
}

GgufWriter& GgufWriter::RemoveTensor(std::string_view name) {
  std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name == name; });
  return *this;
}

std::vector<uint64_t> GgufWriter::Offsets() const {
  std::vector<uint64_t> offsets;
  uint64_t next = 0;
  for (const Tensor& tensor : tensors) {
    offsets.push_back(tensor.offset.value_or(next));
    next += (tensor.bytes() + alignment - 1) / alignment * alignment;
  }
  return offsets;
}

std::string GgufWriter::Header() const {
  std::string bytes = magic + RawBytes(version) + RawBytes(tensor_count.value_or(tensors.size())) +
                      RawBytes(metadata_count.value_or(metadata.size()));
  for (const Metadata& entry : metadata) {
    bytes += RawString(entry.key) + RawBytes(entry.type) + entry.payload;
  }
  const std::vector<uint64_t> offsets = Offsets();
  for (size_t i = 0; i < tensors.size(); ++i) {
    bytes += RawString(tensors[i].name) + RawBytes(static_cast<uint32_t>(tensors[i].shape.size()));
    for (uint64_t size : tensors[i].shape) bytes += RawBytes(size);
    bytes += RawBytes(tensors[i].type) + RawBytes(offsets[i]);
  }
  Pad(&bytes, alignment);
  return bytes;
}

std::string GgufWriter::Bytes() const {
  std::string bytes = Header();
  for (const Tensor& tensor : tensors) {
    Pad(&bytes, alignment);
    bytes += tensor.data;
  }
  return bytes;
}

}  // namespace setu::model
