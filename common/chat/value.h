// SPDX-License-Identifier: Apache-2.0
// The values of the template language. All are immutable and shared, but for a namespace, which
// the evaluator owns; so no cycle can keep memory.
#ifndef SETU_COMMON_CHAT_VALUE_H_
#define SETU_COMMON_CHAT_VALUE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/chat/meter.h"
#include "common/chat/text.h"

namespace setu::chat {

struct Macro;  // ast.h
struct List;
struct Dict;
struct Loop;
struct Namespace;

struct Undefined {};
struct None {};
enum class Function { kRange, kNamespace, kDict, kRaiseException };

using TextPtr = std::shared_ptr<const Text>;
using ListPtr = std::shared_ptr<const List>;
using DictPtr = std::shared_ptr<const Dict>;
using LoopPtr = std::shared_ptr<const Loop>;

using Value = std::variant<Undefined, None, bool, int64_t, double, TextPtr, ListPtr, DictPtr,
                           LoopPtr, Namespace*, const Macro*, Function>;

struct List {  // and tuple
  std::vector<Value> items;
  size_t depth = 1;  // of lists and dicts inside one another
};

struct Dict {
  std::vector<std::pair<TextPtr, Value>> items;  // in order, each key once
  size_t depth = 1;
  const Value* Find(std::string_view key) const;  // null where there is none
};

// The `loop` of one iteration.
struct Loop {
  ListPtr items;
  size_t index = 0;  // from 0
};

struct Namespace {
  std::map<std::string, Value, std::less<>> attributes;
};

// New values, within the limits of `meter`.
absl::StatusOr<Value> NewText(Text text, Meter& meter);
absl::StatusOr<Value> NewList(std::vector<Value> items, Meter& meter);
// A later item of the same key replaces the earlier.
absl::StatusOr<Value> NewDict(const std::vector<std::pair<TextPtr, Value>>& items, Meter& meter);

// Python's rules, with the steps that a look into lists and dicts takes.
bool IsTrue(const Value& value);
absl::StatusOr<bool> Equal(const Value& left, const Value& right, Meter& meter);
absl::StatusOr<int> Compare(const Value& left, const Value& right, Meter& meter);  // <0, 0, >0
absl::StatusOr<bool> Contains(const Value& container, const Value& item, Meter& meter);
// What a `for` goes through: a list's items, a dict's keys, a text's characters.
absl::StatusOr<ListPtr> Iterate(const Value& value, Meter& meter);

// For messages: "string", "list"...
std::string_view TypeName(const Value& value);
template <typename T>
const T* As(const Value& value) {  // T: what a shared pointer of a Value points to
  const auto* pointer = std::get_if<std::shared_ptr<const T>>(&value);
  return pointer == nullptr ? nullptr : pointer->get();
}

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_VALUE_H_
