// SPDX-License-Identifier: Apache-2.0
#include "common/chat/value.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace setu::chat {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

size_t DepthOf(const Value& value) {
  if (const List* list = As<List>(value)) return list->depth;
  if (const Dict* dict = As<Dict>(value)) return dict->depth;
  return 0;
}

// Booleans are numbers to Python.
std::optional<double> Number(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

std::optional<int64_t> Integer(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  return std::nullopt;
}

absl::StatusOr<bool> EqualLists(const List& left, const List& right, Meter& meter) {
  if (left.items.size() != right.items.size()) return false;
  for (size_t i = 0; i < left.items.size(); ++i) {
    SETU_ASSIGN_OR_RETURN(const bool equal, Equal(left.items[i], right.items[i], meter));
    if (!equal) return false;
  }
  return true;
}

absl::StatusOr<bool> EqualDicts(const Dict& left, const Dict& right, Meter& meter) {
  if (left.items.size() != right.items.size()) return false;
  for (const auto& [key, value] : left.items) {
    SETU_RETURN_IF_ERROR(meter.Steps(right.items.size()));
    const Value* other = right.Find(key->view());
    if (other == nullptr) return false;
    SETU_ASSIGN_OR_RETURN(const bool equal, Equal(value, *other, meter));
    if (!equal) return false;
  }
  return true;
}

}  // namespace

const Value* Dict::Find(std::string_view key) const {
  for (const auto& [name, value] : items) {
    if (name->view() == key) return &value;
  }
  return nullptr;
}

absl::StatusOr<Value> NewText(Text text, Meter& meter) {
  SETU_RETURN_IF_ERROR(meter.TextSize(text.size()));
  SETU_RETURN_IF_ERROR(meter.TextBytes(text.size()));
  return Value(std::make_shared<const Text>(std::move(text)));
}

absl::StatusOr<Value> NewList(std::vector<Value> items, Meter& meter) {
  SETU_RETURN_IF_ERROR(meter.Steps(1 + items.size()));
  size_t depth = 0;
  for (const Value& item : items) depth = std::max(depth, DepthOf(item));
  SETU_RETURN_IF_ERROR(meter.Depth(depth + 1));
  return Value(std::make_shared<const List>(List{std::move(items), depth + 1}));
}

absl::StatusOr<Value> NewDict(const std::vector<std::pair<TextPtr, Value>>& items, Meter& meter) {
  Dict dict;
  size_t depth = 0;
  for (const auto& [key, value] : items) {
    SETU_RETURN_IF_ERROR(meter.Steps(1 + dict.items.size()));
    const auto same = std::find_if(dict.items.begin(), dict.items.end(), [&](const auto& item) {
      return item.first->view() == key->view();
    });
    if (same == dict.items.end()) {
      dict.items.emplace_back(key, value);
    } else {
      same->second = value;
    }
    depth = std::max(depth, DepthOf(value));
  }
  SETU_RETURN_IF_ERROR(meter.Depth(depth + 1));
  dict.depth = depth + 1;
  return Value(std::make_shared<const Dict>(std::move(dict)));
}

bool IsTrue(const Value& value) {
  return std::visit(Overloaded{
                        [](Undefined) { return false; },
                        [](None) { return false; },
                        [](bool flag) { return flag; },
                        [](int64_t integer) { return integer != 0; },
                        [](double real) { return real != 0; },
                        [](const TextPtr& text) { return !text->empty(); },
                        [](const ListPtr& list) { return !list->items.empty(); },
                        [](const DictPtr& dict) { return !dict->items.empty(); },
                        [](const auto&) { return true; },
                    },
                    value);
}

absl::StatusOr<bool> Equal(const Value& left, const Value& right, Meter& meter) {
  SETU_RETURN_IF_ERROR(meter.Steps(1));
  if (const auto a = Integer(left), b = Integer(right); a && b) return *a == *b;
  if (const auto a = Number(left), b = Number(right); a && b) return *a == *b;
  if (left.index() != right.index()) return false;
  if (const List* list = As<List>(left)) return EqualLists(*list, *As<List>(right), meter);
  if (const Dict* dict = As<Dict>(left)) return EqualDicts(*dict, *As<Dict>(right), meter);
  if (const Text* text = As<Text>(left)) {
    SETU_RETURN_IF_ERROR(meter.TextBytes(text->size()));
    return text->view() == As<Text>(right)->view();
  }
  if (const auto* loop = std::get_if<LoopPtr>(&left)) return *loop == std::get<LoopPtr>(right);
  if (const auto* space = std::get_if<Namespace*>(&left)) {
    return *space == std::get<Namespace*>(right);
  }
  if (const auto* macro = std::get_if<const Macro*>(&left)) {
    return *macro == std::get<const Macro*>(right);
  }
  if (const auto* function = std::get_if<Function>(&left)) {
    return *function == std::get<Function>(right);
  }
  return true;  // both undefined, or both none
}

absl::StatusOr<int> Compare(const Value& left, const Value& right, Meter& meter) {
  SETU_RETURN_IF_ERROR(meter.Steps(1));
  if (const auto a = Integer(left), b = Integer(right); a && b) return (*a > *b) - (*a < *b);
  if (const auto a = Number(left), b = Number(right); a && b) return (*a > *b) - (*a < *b);
  const Text* a = As<Text>(left);
  const Text* b = As<Text>(right);
  if (a == nullptr || b == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("cannot order ", std::string(TypeName(left)),
                                                   " and ", std::string(TypeName(right))));
  }
  SETU_RETURN_IF_ERROR(meter.TextBytes(std::min(a->size(), b->size())));
  return a->view().compare(b->view());  // UTF-8 sorts as code points do
}

absl::StatusOr<bool> Contains(const Value& container, const Value& item, Meter& meter) {
  if (const Text* text = As<Text>(container)) {
    const Text* part = As<Text>(item);
    if (part == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("looks for ", std::string(TypeName(item)),
                                                     " in a string; only a string can be there"));
    }
    SETU_RETURN_IF_ERROR(meter.Search(text->size(), part->size()));
    return text->view().find(part->view()) != std::string_view::npos;
  }
  if (const Dict* dict = As<Dict>(container)) {
    SETU_RETURN_IF_ERROR(meter.Steps(1 + dict->items.size()));
    const Text* key = As<Text>(item);
    return key != nullptr && dict->Find(key->view()) != nullptr;
  }
  SETU_ASSIGN_OR_RETURN(const ListPtr list, Iterate(container, meter));
  for (const Value& candidate : list->items) {
    SETU_ASSIGN_OR_RETURN(const bool equal, Equal(candidate, item, meter));
    if (equal) return true;
  }
  return false;
}

absl::StatusOr<ListPtr> Iterate(const Value& value, Meter& meter) {
  if (const auto* list = std::get_if<ListPtr>(&value)) return *list;
  List items;
  if (const Text* text = As<Text>(value)) {
    SETU_RETURN_IF_ERROR(meter.Steps(text->size()));
    for (size_t at = 0; at < text->size(); at += CharacterBytes(text->view(), at)) {
      items.items.push_back(
          std::make_shared<const Text>(text->Part(at, at + CharacterBytes(text->view(), at))));
    }
  } else if (const Dict* dict = As<Dict>(value)) {
    SETU_RETURN_IF_ERROR(meter.Steps(1 + dict->items.size()));
    for (const auto& [key, unused] : dict->items) items.items.push_back(key);
  } else if (!std::holds_alternative<Undefined>(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot go through ", std::string(TypeName(value))));
  }
  return std::make_shared<const List>(std::move(items));
}

std::string_view TypeName(const Value& value) {
  constexpr std::string_view kNames[] = {"an undefined value",
                                         "none",
                                         "a boolean",
                                         "an integer",
                                         "a float",
                                         "a string",
                                         "a list",
                                         "a mapping",
                                         "a loop",
                                         "a namespace",
                                         "a macro",
                                         "a function"};
  static_assert(std::size(kNames) == std::variant_size_v<Value>);
  return kNames[value.index()];
}

}  // namespace setu::chat
