// SPDX-License-Identifier: Apache-2.0
// What a filter, test, method or function was called with.
#ifndef SETU_COMMON_CHAT_ARGUMENTS_H_
#define SETU_COMMON_CHAT_ARGUMENTS_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/chat/value.h"

namespace setu::chat {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  // Null where it is not given.
  const Value* Find(size_t position, std::string_view name) const;
  // An error where it is given and is no text (integer); none where it is not given, or is none.
  absl::StatusOr<std::optional<TextPtr>> FindText(size_t position, std::string_view name) const;
  absl::StatusOr<std::optional<int64_t>> FindInteger(size_t position, std::string_view name) const;

  // An error where there are more than `names`, or one by another name.
  absl::Status Check(std::span<const std::string_view> names) const;
};

// A filter or method: its parameters, and what it makes of a value.
struct Builtin {
  std::string_view name;
  std::span<const std::string_view> parameters;
  absl::StatusOr<Value> (*call)(const Value& value, const Arguments& arguments, Meter& meter);
};

// Null where none has that name.
const Builtin* FindBuiltin(std::span<const Builtin> builtins, std::string_view name);

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_ARGUMENTS_H_
