// SPDX-License-Identifier: Apache-2.0
#include "common/chat/operators.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/chat/print.h"

namespace setu::chat {
namespace {

absl::Status Wrong(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

absl::Status Unfit(Operator op, const Value& left, const Value& right) {
  constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "**", "~"};
  return Wrong(absl::StrCat("cannot calculate ", std::string(TypeName(left)), " ",
                            std::string(kSigns[static_cast<size_t>(op)]), " ",
                            std::string(TypeName(right))));
}

std::optional<int64_t> Integer(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  return std::nullopt;
}

std::optional<double> Real(const Value& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto integer = Integer(value)) return static_cast<double>(*integer);
  return std::nullopt;
}

absl::StatusOr<Value> Checked(bool overflow, int64_t result) {
  if (overflow) return Wrong("an integer does not fit 64 bits");
  return Value(result);
}

// a to the power of b >= 0.
absl::StatusOr<Value> Power(int64_t a, int64_t b) {
  if (a == 0 || a == 1) return Value(b == 0 ? int64_t{1} : a);
  if (a == -1) return Value(b % 2 == 0 ? int64_t{1} : int64_t{-1});
  int64_t result = 1;
  for (int64_t i = 0; i < b; ++i) {  // at most 63 rounds before it overflows
    if (__builtin_mul_overflow(result, a, &result)) return Checked(true, 0);
  }
  return Value(result);
}

absl::StatusOr<Value> CalculateIntegers(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Operator::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      return Checked(overflow, result);
    case Operator::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      return Checked(overflow, result);
    case Operator::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      return Checked(overflow, result);
    case Operator::kPower:
      if (b < 0) return Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
      return Power(a, b);
    default:
      break;
  }
  if (b == 0) return Wrong("divides by zero");
  if (op == Operator::kDivide) return Value(static_cast<double>(a) / static_cast<double>(b));
  if (a == std::numeric_limits<int64_t>::min() && b == -1) return Checked(true, 0);
  const int64_t remainder = a % b;
  const bool down = remainder != 0 && (remainder < 0) != (b < 0);  // towards minus infinity
  if (op == Operator::kFloorDivide) return Value(a / b - (down ? 1 : 0));
  return Value(remainder + (down ? b : 0));
}

absl::StatusOr<Value> CalculateReals(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return Value(a + b);
    case Operator::kSubtract:
      return Value(a - b);
    case Operator::kMultiply:
      return Value(a * b);
    case Operator::kPower:
      return Value(std::pow(a, b));
    default:
      break;
  }
  if (b == 0) return Wrong("divides by zero");
  if (op == Operator::kDivide) return Value(a / b);
  if (op == Operator::kFloorDivide) return Value(std::floor(a / b));
  return Value(a - b * std::floor(a / b));
}

absl::StatusOr<Value> Join(const Value& left, const Value& right, Meter& meter) {
  TextWriter writer(meter);
  SETU_RETURN_IF_ERROR(Print(left, writer));
  SETU_RETURN_IF_ERROR(Print(right, writer));
  return NewText(writer.Take(), meter);
}

absl::StatusOr<Value> Concatenate(const List& left, const List& right, Meter& meter) {
  SETU_RETURN_IF_ERROR(meter.Steps(left.items.size() + right.items.size()));
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return NewList(std::move(items), meter);
}

// "ab" * 3, [a] * 3
absl::StatusOr<Value> Repeat(const Value& value, int64_t times, Meter& meter) {
  TextWriter writer(meter);
  std::vector<Value> items;
  const List* list = As<List>(value);
  for (int64_t i = 0; i < times; ++i) {
    SETU_RETURN_IF_ERROR(meter.Steps(1));
    if (list == nullptr) {
      SETU_RETURN_IF_ERROR(Print(value, writer));
    } else {
      SETU_RETURN_IF_ERROR(meter.Steps(list->items.size()));
      items.insert(items.end(), list->items.begin(), list->items.end());
    }
  }
  return list == nullptr ? NewText(writer.Take(), meter) : NewList(std::move(items), meter);
}

// Which of `size` items a slice takes, in its order. As PySlice_AdjustIndices does it.
std::vector<size_t> SliceIndexes(const SliceBounds& bounds, int64_t size) {
  const int64_t step = std::clamp(bounds.step.value_or(1), -size - 1, size + 1);  // no overflow
  const auto clamp = [&](std::optional<int64_t> bound, int64_t absent) {
    if (!bound) return absent;
    const int64_t lowest = step < 0 ? -1 : 0;
    const int64_t highest = step < 0 ? size - 1 : size;
    return std::clamp(*bound < 0 ? *bound + size : *bound, lowest, highest);
  };
  const int64_t start = clamp(bounds.start, step < 0 ? size - 1 : 0);
  const int64_t stop = clamp(bounds.stop, step < 0 ? -1 : size);
  std::vector<size_t> indexes;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
    indexes.push_back(static_cast<size_t>(i));
  }
  return indexes;
}

}  // namespace

absl::StatusOr<Value> Calculate(Operator op, const Value& left, const Value& right, Meter& meter) {
  if (op == Operator::kConcatenate) return Join(left, right, meter);
  const auto a = Integer(left);
  const auto b = Integer(right);
  if (a && b) return CalculateIntegers(op, *a, *b);
  const auto x = Real(left);
  const auto y = Real(right);
  if (x && y) return CalculateReals(op, *x, *y);
  if (op == Operator::kAdd) {
    if (As<Text>(left) != nullptr && As<Text>(right) != nullptr) return Join(left, right, meter);
    const List* first = As<List>(left);
    const List* second = As<List>(right);
    if (first != nullptr && second != nullptr) return Concatenate(*first, *second, meter);
  }
  const auto repeats = [](const Value& value) { return As<Text>(value) || As<List>(value); };
  if (op == Operator::kMultiply && repeats(left) && b) return Repeat(left, *b, meter);
  if (op == Operator::kMultiply && repeats(right) && a) return Repeat(right, *a, meter);
  return Unfit(op, left, right);
}

absl::StatusOr<bool> CompareBy(Operator op, const Value& left, const Value& right, Meter& meter) {
  switch (op) {
    case Operator::kEqual:
      return Equal(left, right, meter);
    case Operator::kNotEqual: {
      SETU_ASSIGN_OR_RETURN(const bool equal, Equal(left, right, meter));
      return !equal;
    }
    case Operator::kIn:
      return Contains(right, left, meter);
    case Operator::kNotIn: {
      SETU_ASSIGN_OR_RETURN(const bool contains, Contains(right, left, meter));
      return !contains;
    }
    default:
      break;
  }
  SETU_ASSIGN_OR_RETURN(const int order, Compare(left, right, meter));
  if (op == Operator::kLess) return order < 0;
  if (op == Operator::kLessEqual) return order <= 0;
  if (op == Operator::kGreater) return order > 0;
  return order >= 0;
}

absl::StatusOr<Value> Negate(const Value& value) {
  if (const auto integer = Integer(value)) {
    return CalculateIntegers(Operator::kSubtract, 0, *integer);
  }
  if (const auto real = Real(value)) return Value(-*real);
  return Wrong(absl::StrCat("cannot negate ", std::string(TypeName(value))));
}

absl::StatusOr<Value> Item(const Value& value, const Value& index, Meter& meter) {
  if (std::holds_alternative<Undefined>(value)) return Wrong("looks into an undefined value");
  if (const Dict* dict = As<Dict>(value)) {
    SETU_RETURN_IF_ERROR(meter.Steps(1 + dict->items.size() / 8));
    const Text* key = As<Text>(index);
    const Value* found = key == nullptr ? nullptr : dict->Find(key->view());
    return found == nullptr ? Value(Undefined{}) : *found;
  }
  if (const auto* space = std::get_if<Namespace*>(&value)) {
    const Text* key = As<Text>(index);
    if (key == nullptr) return Value(Undefined{});
    const auto found = (*space)->attributes.find(key->view());
    return found == (*space)->attributes.end() ? Value(Undefined{}) : found->second;
  }
  const auto at = Integer(index);
  if (!at) return Value(Undefined{});
  if (const List* list = As<List>(value)) {
    const auto size = static_cast<int64_t>(list->items.size());
    const int64_t place = *at < 0 ? *at + size : *at;
    if (place < 0 || place >= size) return Value(Undefined{});
    return list->items[static_cast<size_t>(place)];
  }
  if (const Text* text = As<Text>(value)) {
    SETU_RETURN_IF_ERROR(meter.TextBytes(text->size()));
    const std::vector<size_t> offsets = CharacterOffsets(text->view());
    const auto size = static_cast<int64_t>(offsets.size()) - 1;
    const int64_t place = *at < 0 ? *at + size : *at;
    if (place < 0 || place >= size) return Value(Undefined{});
    const auto begin = static_cast<size_t>(place);
    return NewText(text->Part(offsets[begin], offsets[begin + 1]), meter);
  }
  return Value(Undefined{});
}

absl::StatusOr<Value> SliceOf(const Value& value, const SliceBounds& bounds, Meter& meter) {
  if (std::holds_alternative<Undefined>(value)) return Wrong("looks into an undefined value");
  const int64_t step = bounds.step.value_or(1);
  if (step == 0) return Wrong("a slice's step is 0");
  if (const List* list = As<List>(value)) {
    SETU_RETURN_IF_ERROR(meter.Steps(1 + list->items.size()));
    std::vector<Value> items;
    for (size_t i : SliceIndexes(bounds, static_cast<int64_t>(list->items.size()))) {
      items.push_back(list->items[i]);
    }
    return NewList(std::move(items), meter);
  }
  const Text* text = As<Text>(value);
  if (text == nullptr) return Value(Undefined{});
  SETU_RETURN_IF_ERROR(meter.TextBytes(text->size()));
  const std::vector<size_t> offsets = CharacterOffsets(text->view());
  const auto size = static_cast<int64_t>(offsets.size()) - 1;
  const std::vector<size_t> indexes = SliceIndexes(bounds, size);
  if (step == 1) {
    if (indexes.empty()) return NewText(Text(), meter);
    return NewText(text->Part(offsets[indexes.front()], offsets[indexes.back() + 1]), meter);
  }
  SETU_RETURN_IF_ERROR(meter.Steps(indexes.size()));
  Text result;
  for (size_t i : indexes) result.Append(text->Part(offsets[i], offsets[i + 1]));
  return NewText(std::move(result), meter);
}

}  // namespace setu::chat
