// SPDX-License-Identifier: Apache-2.0
#include "services/router/wire_check.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"

namespace setu::router {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr auto kDelimited = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;

CodedInputStream Open(std::string_view bytes) {
  return CodedInputStream(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(bytes.size()));
}

std::optional<std::string_view> ReadDelimited(CodedInputStream& in) {
  uint32_t length = 0;
  const void* data = nullptr;
  int left = 0;
  if (!in.ReadVarint32(&length)) return std::nullopt;
  if (length == 0) return std::string_view();
  if (!in.GetDirectBufferPointer(&data, &left)) return std::nullopt;
  if (length > static_cast<uint32_t>(left)) return std::nullopt;
  in.Skip(static_cast<int>(length));
  return std::string_view(static_cast<const char*>(data), length);
}

absl::Status CheckDelimited(std::string_view value, const FieldDescriptor& field) {
  if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
    const absl::Status inner = CheckWire(value, *field.message_type());
    if (inner.ok()) return inner;
    return absl::InvalidArgumentError(absl::StrCat(field.name(), ".", inner.message()));
  }
  if (field.type() == FieldDescriptor::TYPE_STRING) {
    const size_t valid = ValidUtf8Prefix(value);
    if (valid == value.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(field.name(), " is not valid UTF-8 at byte ", valid));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckWire(std::string_view bytes, const Descriptor& type) {
  CodedInputStream in = Open(bytes);
  while (const uint32_t tag = in.ReadTag()) {
    const int number = WireFormatLite::GetTagFieldNumber(tag);
    const FieldDescriptor* field = type.FindFieldByNumber(number);
    if (field == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("#", number, " is not a field of ",
                                                     type.full_name(),
                                                     "; what is not supported is refused"));
    }
    const auto wire = WireFormatLite::GetTagWireType(tag);
    const auto expected =
        WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field->type()));
    if (wire != expected && !(field->is_packable() && wire == kDelimited)) {
      return absl::InvalidArgumentError(
          absl::StrCat(field->name(), " has wire type ", wire, "; it must be ", expected));
    }
    if (wire != kDelimited) {
      if (WireFormatLite::SkipField(&in, tag)) continue;
    } else if (const auto value = ReadDelimited(in)) {
      SETU_RETURN_IF_ERROR(CheckDelimited(*value, *field));
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(field->name(), " ends too early"));
  }
  if (in.ConsumedEntireMessage()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("#0 is not a field of ", type.full_name()));
}

}  // namespace setu::router
