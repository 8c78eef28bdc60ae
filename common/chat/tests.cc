// SPDX-License-Identifier: Apache-2.0
#include "common/chat/tests.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/chat/operators.h"
#include "common/chat/text_functions.h"

namespace setu::chat {
namespace {

template <typename T>
bool Is(const Value& value) {
  return std::holds_alternative<T>(value);
}

// Tests that only look at the value's type. None: `name` is no such test.
std::optional<bool> TestType(std::string_view name, const Value& value) {
  const bool sequence = Is<TextPtr>(value) || Is<ListPtr>(value) || Is<DictPtr>(value);
  if (name == "defined") return !Is<Undefined>(value);
  if (name == "undefined") return Is<Undefined>(value);
  if (name == "none") return Is<None>(value);
  if (name == "string") return Is<TextPtr>(value);
  if (name == "mapping") return Is<DictPtr>(value);
  if (name == "iterable" || name == "sequence") return sequence || Is<Undefined>(value);
  if (name == "boolean") return Is<bool>(value);
  if (name == "integer") return Is<int64_t>(value);
  if (name == "float") return Is<double>(value);
  if (name == "number") return Is<bool>(value) || Is<int64_t>(value) || Is<double>(value);
  if (name == "callable") return Is<const Macro*>(value) || Is<Function>(value);
  if (name == "true") return Is<bool>(value) && std::get<bool>(value);
  if (name == "false") return Is<bool>(value) && !std::get<bool>(value);
  return std::nullopt;
}

std::optional<Operator> ComparisonOf(std::string_view name) {
  if (name == "eq" || name == "equalto" || name == "sameas") return Operator::kEqual;
  if (name == "ne") return Operator::kNotEqual;
  if (name == "lt" || name == "lessthan") return Operator::kLess;
  if (name == "le") return Operator::kLessEqual;
  if (name == "gt" || name == "greaterthan") return Operator::kGreater;
  if (name == "ge") return Operator::kGreaterEqual;
  if (name == "in") return Operator::kIn;
  return std::nullopt;
}

absl::StatusOr<bool> TestRemainder(const Value& value, int64_t divisor, int64_t wanted,
                                   Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const Value remainder,
                        Calculate(Operator::kModulo, value, Value(divisor), meter));
  return Equal(remainder, Value(wanted), meter);
}

}  // namespace

absl::StatusOr<bool> ApplyTest(std::string_view name, const Value& value,
                               const Arguments& arguments, Meter& meter) {
  if (const std::optional<bool> result = TestType(name, value)) return *result;
  const Value* argument = arguments.Find(0, "other");
  if (const std::optional<Operator> op = ComparisonOf(name)) {
    if (argument != nullptr) return CompareBy(*op, value, *argument, meter);
    return absl::InvalidArgumentError(
        absl::StrCat("test '", std::string(name), "' needs an argument"));
  }
  if (name == "even") return TestRemainder(value, 2, 0, meter);
  if (name == "odd") return TestRemainder(value, 2, 1, meter);
  if (name == "divisibleby") {
    SETU_ASSIGN_OR_RETURN(const auto divisor, arguments.FindInteger(0, "num"));
    return TestRemainder(value, divisor.value_or(0), 0, meter);
  }
  if (name == "lower" || name == "upper") {
    const Text* text = As<Text>(value);
    if (text == nullptr) return false;
    SETU_RETURN_IF_ERROR(meter.TextBytes(text->size()));
    const Text same = name == "lower" ? Upper(*text) : Lower(*text);
    const Text changed = name == "lower" ? Lower(*text) : Upper(*text);
    return changed.view() == text->view() && same.view() != text->view();
  }
  return absl::InvalidArgumentError(absl::StrCat("test '", std::string(name), "' is not known"));
}

}  // namespace setu::chat
