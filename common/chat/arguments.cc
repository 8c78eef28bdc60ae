// SPDX-License-Identifier: Apache-2.0
#include "common/chat/arguments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace setu::chat {

const Value* Arguments::Find(size_t position, std::string_view name) const {
  if (position < positional.size()) return &positional[position];
  for (const auto& [own_name, value] : named) {
    if (own_name == name) return &value;
  }
  return nullptr;
}

absl::StatusOr<std::optional<TextPtr>> Arguments::FindText(size_t position,
                                                           std::string_view name) const {
  const Value* value = Find(position, name);
  if (value == nullptr || std::holds_alternative<None>(*value)) return std::nullopt;
  if (const auto* text = std::get_if<TextPtr>(value)) return *text;
  return absl::InvalidArgumentError(absl::StrCat(
      "argument '", std::string(name), "' is ", std::string(TypeName(*value)), "; needs a string"));
}

absl::StatusOr<std::optional<int64_t>> Arguments::FindInteger(size_t position,
                                                              std::string_view name) const {
  const Value* value = Find(position, name);
  if (value == nullptr || std::holds_alternative<None>(*value)) return std::nullopt;
  if (const auto* integer = std::get_if<int64_t>(value)) return *integer;
  return absl::InvalidArgumentError(absl::StrCat("argument '", std::string(name), "' is ",
                                                 std::string(TypeName(*value)),
                                                 "; needs an integer"));
}

absl::Status Arguments::Check(std::span<const std::string_view> names) const {
  if (positional.size() > names.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("takes ", names.size(), " arguments, not ", positional.size()));
  }
  for (const auto& [name, value] : named) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return absl::InvalidArgumentError(absl::StrCat("takes no argument '", name, "'"));
    }
  }
  return absl::OkStatus();
}

const Builtin* FindBuiltin(std::span<const Builtin> builtins, std::string_view name) {
  for (const Builtin& builtin : builtins) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

}  // namespace setu::chat
