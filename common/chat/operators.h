// SPDX-License-Identifier: Apache-2.0
// Arithmetic, joining, indexing and slicing, by Python's rules; integers have 64 bits and overflow
// is an error.
#ifndef SETU_COMMON_CHAT_OPERATORS_H_
#define SETU_COMMON_CHAT_OPERATORS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "common/chat/ast.h"
#include "common/chat/meter.h"
#include "common/chat/value.h"

namespace setu::chat {

// + - * / // % ** ~
absl::StatusOr<Value> Calculate(Operator op, const Value& left, const Value& right, Meter& meter);
// == != < <= > >= in, not in
absl::StatusOr<bool> CompareBy(Operator op, const Value& left, const Value& right, Meter& meter);
absl::StatusOr<Value> Negate(const Value& value);

// value[index]; undefined where there is nothing, an error only inside an undefined value.
absl::StatusOr<Value> Item(const Value& value, const Value& index, Meter& meter);

struct SliceBounds {
  std::optional<int64_t> start, stop, step;
};
absl::StatusOr<Value> SliceOf(const Value& value, const SliceBounds& bounds, Meter& meter);

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_OPERATORS_H_
