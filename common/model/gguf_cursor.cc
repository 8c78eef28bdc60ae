// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf_cursor.h"

#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/gguf_value_type.h"

namespace setu::model {
namespace {

using Value = GgufFile::Value;

constexpr uint64_t kMaxArrayLength = 1 << 24;

using ValueType = GgufValueType;

// Bytes that a value takes at least; 0 for types that do not exist or cannot be an element.
constexpr uint64_t kElementBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};

// std::in_range takes no bool.
template <typename T>
using Integer = std::conditional_t<std::is_same_v<T, bool>, int32_t, T>;

// The value as an element of an array that is kept; nullopt where it does not fit.
template <typename Element>
std::optional<Element> Narrow(Value& value) {
  return std::visit(
      [](auto& held) -> std::optional<Element> {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, Element>) {
          return std::move(held);
        } else if constexpr (std::is_same_v<Held, double> && std::is_same_v<Element, float>) {
          return static_cast<Element>(held);
        } else if constexpr (std::is_integral_v<Held> && std::is_same_v<Element, int32_t>) {
          const auto integer = static_cast<Integer<Held>>(held);
          if (std::in_range<int32_t>(integer)) return static_cast<Element>(integer);
        }
        return std::nullopt;
      },
      value);
}

}  // namespace

absl::Status InvalidField(std::string_view field, const std::string& problem) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(field), ": ", problem));
}

std::string Quoted(std::string_view name) {
  constexpr size_t kShown = 64;
  return absl::StrCat("'", absl::CHexEscape(std::string(name.substr(0, kShown))),
                      name.size() > kShown ? "...'" : "'");
}

absl::Status GgufCursor::CutShort(std::string_view field) const {
  return InvalidField(field, absl::StrCat("the file ends inside it, after ", file_.size(),
                                          " bytes; it is cut short"));
}

absl::StatusOr<std::string> GgufCursor::NextString(std::string_view field, uint64_t limit) {
  SETU_ASSIGN_OR_RETURN(uint64_t length, Next<uint64_t>(field));
  if (length > limit) {
    return InvalidField(field, absl::StrCat("length ", length, " is over the limit ", limit));
  }
  if (length > remaining()) {
    return InvalidField(field, absl::StrCat("length ", length, " is over the ", remaining(),
                                            " bytes that are left in the file"));
  }
  std::string text(reinterpret_cast<const char*>(file_.data() + position_), length);
  position_ += length;
  return text;
}

absl::Status GgufCursor::CheckCount(std::string_view field, uint64_t count, uint64_t bytes_each,
                                    uint64_t limit) const {
  if (count > limit) {
    return InvalidField(field, absl::StrCat(count, " is over the limit ", limit));
  }
  if (count > remaining() / bytes_each) {
    return InvalidField(field, absl::StrCat(count, " need more than the ", remaining(),
                                            " bytes that are left in the file"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> GgufCursor::NextValue(const std::string& field) {
  SETU_ASSIGN_OR_RETURN(uint32_t type, Next<uint32_t>(field));
  return static_cast<ValueType>(type) == ValueType::kArray ? NextArray(field)
                                                           : NextScalar(field, type);
}

template <typename Stored, typename Kept>
absl::StatusOr<Value> GgufCursor::NextAs(std::string_view field) {
  SETU_ASSIGN_OR_RETURN(Stored stored, Next<Stored>(field));
  return Value(static_cast<Kept>(stored));
}

absl::StatusOr<Value> GgufCursor::NextBool(std::string_view field) {
  SETU_ASSIGN_OR_RETURN(uint8_t byte, Next<uint8_t>(field));
  if (byte > 1) return InvalidField(field, absl::StrCat("a bool is 0 or 1, not ", byte));
  return Value(byte == 1);
}

absl::StatusOr<Value> GgufCursor::NextScalar(const std::string& field, uint32_t type) {
  switch (static_cast<ValueType>(type)) {
    case ValueType::kUint8:
      return NextAs<uint8_t, uint64_t>(field);
    case ValueType::kInt8:
      return NextAs<int8_t, int64_t>(field);
    case ValueType::kUint16:
      return NextAs<uint16_t, uint64_t>(field);
    case ValueType::kInt16:
      return NextAs<int16_t, int64_t>(field);
    case ValueType::kUint32:
      return NextAs<uint32_t, uint64_t>(field);
    case ValueType::kInt32:
      return NextAs<int32_t, int64_t>(field);
    case ValueType::kUint64:
      return NextAs<uint64_t, uint64_t>(field);
    case ValueType::kInt64:
      return NextAs<int64_t, int64_t>(field);
    case ValueType::kFloat32:
      return NextAs<float, double>(field);
    case ValueType::kFloat64:
      return NextAs<double, double>(field);
    case ValueType::kBool:
      return NextBool(field);
    case ValueType::kString: {
      SETU_ASSIGN_OR_RETURN(std::string text, NextString(field, file_.size()));
      return absl::StatusOr<Value>(std::move(text));
    }
    case ValueType::kArray:
      break;
  }
  return InvalidField(field, absl::StrCat("value type ", type, " does not exist"));
}

absl::StatusOr<Value> GgufCursor::NextArray(const std::string& field) {
  SETU_ASSIGN_OR_RETURN(uint32_t type, Next<uint32_t>(field));
  SETU_ASSIGN_OR_RETURN(uint64_t count, Next<uint64_t>(field));
  const uint64_t bytes_each = type < std::size(kElementBytes) ? kElementBytes[type] : 0;
  if (bytes_each == 0) {
    return InvalidField(field, absl::StrCat("an array's elements cannot be of value type ", type,
                                            "; arrays are not nested"));
  }
  SETU_RETURN_IF_ERROR(
      CheckCount(absl::StrCat(field, ": array length"), count, bytes_each, kMaxArrayLength));
  switch (static_cast<ValueType>(type)) {
    case ValueType::kString:
      return NextElements<std::string>(field, type, count);
    case ValueType::kFloat32:
    case ValueType::kFloat64:
      return NextElements<float>(field, type, count);
    default:
      return NextElements<int32_t>(field, type, count);
  }
}

template <typename Element>
absl::StatusOr<Value> GgufCursor::NextElements(const std::string& field, uint32_t type,
                                               uint64_t count) {
  std::vector<Element> elements;
  elements.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    SETU_ASSIGN_OR_RETURN(Value value, NextScalar(field, type));
    std::optional<Element> element = Narrow<Element>(value);
    if (!element) {
      return InvalidField(field, absl::StrCat("element ", i, " does not fit 32 bits with sign"));
    }
    elements.push_back(*std::move(element));
  }
  return Value(std::move(elements));
}

}  // namespace setu::model
