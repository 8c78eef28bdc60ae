// SPDX-License-Identifier: Apache-2.0
#include "common/chat/filters.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/chat/methods.h"
#include "common/chat/operators.h"
#include "common/chat/print.h"
#include "common/chat/tests.h"
#include "common/chat/text_functions.h"

namespace setu::chat {
namespace {

using Result = absl::StatusOr<Value>;

absl::Status Wrong(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

// A filter that first makes text of any value.
template <Text (*change)(const Text&)>
Result ChangeText(const Value& value, const Arguments&, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const Text text, ToText(value, meter));
  return NewText(change(text), meter);
}

Result Trim(const Value& value, const Arguments& arguments, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const Text text, ToText(value, meter));
  SETU_ASSIGN_OR_RETURN(const auto characters, arguments.FindText(0, "chars"));
  std::optional<std::string_view> view;
  if (characters) view = (*characters)->view();
  SETU_RETURN_IF_ERROR(meter.Search(text.size(), view ? view->size() : 0));
  return NewText(Strip(text, view, Side::kBoth), meter);
}

Result String(const Value& value, const Arguments&, Meter& meter) {
  if (As<Text>(value) != nullptr) return value;
  SETU_ASSIGN_OR_RETURN(Text text, ToText(value, meter));
  return NewText(std::move(text), meter);
}

Result Same(const Value& value, const Arguments&, Meter&) { return value; }

Result Length(const Value& value, const Arguments&, Meter& meter) {
  if (const Text* text = As<Text>(value)) {
    SETU_RETURN_IF_ERROR(meter.TextBytes(text->size()));
    return static_cast<int64_t>(CharacterOffsets(text->view()).size()) - 1;
  }
  SETU_ASSIGN_OR_RETURN(const ListPtr list, Iterate(value, meter));
  return static_cast<int64_t>(list->items.size());
}

Result Join(const Value& value, const Arguments& arguments, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const ListPtr list, Iterate(value, meter));
  const Value* separator = arguments.Find(0, "d");
  const Value* attribute = arguments.Find(1, "attribute");
  TextWriter writer(meter);
  for (size_t i = 0; i < list->items.size(); ++i) {
    if (i > 0 && separator != nullptr) SETU_RETURN_IF_ERROR(Print(*separator, writer));
    if (attribute == nullptr) {
      SETU_RETURN_IF_ERROR(Print(list->items[i], writer));
    } else {
      SETU_ASSIGN_OR_RETURN(const Value item, Item(list->items[i], *attribute, meter));
      SETU_RETURN_IF_ERROR(Print(item, writer));
    }
  }
  return NewText(writer.Take(), meter);
}

Result Default(const Value& value, const Arguments& arguments, Meter& meter) {
  const Value* also_false = arguments.Find(1, "boolean");
  const bool missing = std::holds_alternative<Undefined>(value) ||
                       (also_false != nullptr && IsTrue(*also_false) && !IsTrue(value));
  if (!missing) return value;
  const Value* otherwise = arguments.Find(0, "default_value");
  return otherwise == nullptr ? NewText(Text(), meter) : *otherwise;
}

Result ToJson(const Value& value, const Arguments& arguments, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const auto indent, arguments.FindInteger(0, "indent"));
  if (indent && (*indent < 0 || *indent > 16)) return Wrong("an indent is 0 to 16");
  TextWriter writer(meter);
  SETU_RETURN_IF_ERROR(PrintJson(value, indent, writer));
  return NewText(writer.Take(), meter);
}

template <bool first>
Result End(const Value& value, const Arguments&, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const ListPtr list, Iterate(value, meter));
  if (list->items.empty()) return Value(Undefined{});
  return first ? list->items.front() : list->items.back();
}

Result ReplaceFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const Text text, ToText(value, meter));
  SETU_ASSIGN_OR_RETURN(const auto part, arguments.FindText(0, "old"));
  SETU_ASSIGN_OR_RETURN(const auto with, arguments.FindText(1, "new"));
  SETU_ASSIGN_OR_RETURN(const auto most, arguments.FindInteger(2, "count"));
  if (!part || !with) return Wrong("needs an old and a new string");
  SETU_ASSIGN_OR_RETURN(Text result,
                        Replace(text, (*part)->view(), **with, most.value_or(-1), meter));
  return NewText(std::move(result), meter);
}

Result ListFilter(const Value& value, const Arguments&, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(ListPtr list, Iterate(value, meter));
  return Value(std::move(list));
}

Result Items(const Value& value, const Arguments& arguments, Meter& meter) {
  if (std::holds_alternative<Undefined>(value)) return NewList({}, meter);
  if (As<Dict>(value) == nullptr) return Wrong("needs a mapping");
  return FindMethod(value, "items")->call(value, arguments, meter);
}

Result Reverse(const Value& value, const Arguments&, Meter& meter) {
  const SliceBounds backwards = {.start = {}, .stop = {}, .step = -1};
  if (As<Text>(value) != nullptr) return SliceOf(value, backwards, meter);
  SETU_ASSIGN_OR_RETURN(ListPtr list, Iterate(value, meter));
  return SliceOf(Value(std::move(list)), backwards, meter);
}

Result Int(const Value& value, const Arguments& arguments, Meter&) {
  if (const auto* flag = std::get_if<bool>(&value)) return int64_t{*flag};
  if (std::holds_alternative<int64_t>(value)) return value;
  if (const auto* real = std::get_if<double>(&value)) {
    if (std::abs(*real) < 9e18) return static_cast<int64_t>(*real);
  }
  int64_t number = 0;
  const Text* text = As<Text>(value);
  if (text != nullptr && text->size() <= 64 &&
      absl::SimpleAtoi(std::string(text->view()), &number)) {
    return number;
  }
  const Value* otherwise = arguments.Find(0, "default");
  return otherwise == nullptr ? Value(int64_t{0}) : *otherwise;
}

Result Abs(const Value& value, const Arguments&, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const int order, Compare(value, Value(int64_t{0}), meter));
  return order < 0 ? Negate(value) : Result(value);
}

// Jinja takes every false value for an empty list here, none too.
absl::StatusOr<ListPtr> IterateIfTrue(const Value& value, Meter& meter) {
  if (!IsTrue(value)) return std::make_shared<const List>();
  return Iterate(value, meter);
}

// The filters or tests that map, select and their kin apply to each item.
Arguments Rest(const Arguments& arguments, size_t from) {
  Arguments rest;
  for (size_t i = from; i < arguments.positional.size(); ++i) {
    rest.positional.push_back(arguments.positional[i]);
  }
  return rest;
}

// select, reject: by a test of the item; selectattr, rejectattr: of one of its attributes.
template <bool by_attribute, bool wanted>
Result Select(const Value& value, const Arguments& arguments, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const ListPtr list, IterateIfTrue(value, meter));
  const size_t test_at = by_attribute ? 1 : 0;
  const Value* attribute = by_attribute ? arguments.Find(0, "attribute") : nullptr;
  if (by_attribute && attribute == nullptr) return Wrong("needs an attribute's name");
  SETU_ASSIGN_OR_RETURN(const auto test, arguments.FindText(test_at, "test"));
  const Arguments rest = Rest(arguments, test_at + 1);
  std::vector<Value> selected;
  for (const Value& item : list->items) {
    Value subject = item;
    if (by_attribute) {
      SETU_ASSIGN_OR_RETURN(subject, Item(item, *attribute, meter));
    }
    bool passes = IsTrue(subject);
    if (test) {
      SETU_ASSIGN_OR_RETURN(passes, ApplyTest((*test)->view(), subject, rest, meter));
    }
    SETU_RETURN_IF_ERROR(meter.Steps(1));
    if (passes == wanted) selected.push_back(item);
  }
  return NewList(std::move(selected), meter);
}

Result Map(const Value& value, const Arguments& arguments, Meter& meter);

constexpr std::string_view kChars[] = {"chars"};
constexpr std::string_view kJoin[] = {"d", "attribute"};
constexpr std::string_view kDefault[] = {"default_value", "boolean"};
constexpr std::string_view kIndent[] = {"indent"};
constexpr std::string_view kReplace[] = {"old", "new", "count"};
constexpr std::string_view kInt[] = {"default"};
constexpr std::string_view kMap[] = {"filter", "attribute", "default", "", ""};
constexpr std::string_view kSelect[] = {"test", "", "", ""};
constexpr std::string_view kSelectAttribute[] = {"attribute", "test", "", "", ""};

// Those that map may apply: none of them applies others.
constexpr Builtin kSimpleFilters[] = {
    {"trim", kChars, Trim},
    {"upper", {}, ChangeText<Upper>},
    {"lower", {}, ChangeText<Lower>},
    {"title", {}, ChangeText<TitleWords>},
    {"capitalize", {}, ChangeText<Capitalize>},
    {"string", {}, String},
    {"safe", {}, Same},
    {"length", {}, Length},
    {"count", {}, Length},
    {"join", kJoin, Join},
    {"default", kDefault, Default},
    {"d", kDefault, Default},
    {"tojson", kIndent, ToJson},
    {"first", {}, End<true>},
    {"last", {}, End<false>},
    {"replace", kReplace, ReplaceFilter},
    {"list", {}, ListFilter},
    {"items", {}, Items},
    {"reverse", {}, Reverse},
    {"int", kInt, Int},
    {"abs", {}, Abs},
};

constexpr Builtin kListFilters[] = {
    {"map", kMap, Map},
    {"select", kSelect, Select<false, true>},
    {"reject", kSelect, Select<false, false>},
    {"selectattr", kSelectAttribute, Select<true, true>},
    {"rejectattr", kSelectAttribute, Select<true, false>},
};

Result Apply(const Builtin* filter, std::string_view name, const Value& value,
             const Arguments& arguments, Meter& meter) {
  if (filter == nullptr) {
    return Wrong(absl::StrCat("filter '", std::string(name), "' is not known"));
  }
  absl::Status status = arguments.Check(filter->parameters);
  if (status.ok()) {
    Result result = filter->call(value, arguments, meter);
    if (result.ok()) return result;
    status = result.status();
  }
  return Wrong(absl::StrCat("filter '", std::string(name), "': ", std::string(status.message())));
}

Result Map(const Value& value, const Arguments& arguments, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const ListPtr list, IterateIfTrue(value, meter));
  const bool by_filter = !arguments.positional.empty();
  SETU_ASSIGN_OR_RETURN(const auto filter, arguments.FindText(0, "filter"));
  const Value* attribute = by_filter ? nullptr : arguments.Find(5, "attribute");
  const Value* otherwise = by_filter ? nullptr : arguments.Find(5, "default");
  if (!filter && attribute == nullptr) return Wrong("needs a filter or an attribute");
  const Arguments rest = Rest(arguments, 1);
  std::vector<Value> mapped;
  for (const Value& item : list->items) {
    SETU_RETURN_IF_ERROR(meter.Steps(1));
    if (filter) {
      const std::string_view name = (*filter)->view();
      SETU_ASSIGN_OR_RETURN(Value result,
                            Apply(FindBuiltin(kSimpleFilters, name), name, item, rest, meter));
      mapped.push_back(std::move(result));
      continue;
    }
    SETU_ASSIGN_OR_RETURN(Value result, Item(item, *attribute, meter));
    const bool missing = std::holds_alternative<Undefined>(result) && otherwise != nullptr;
    if (missing) result = *otherwise;
    mapped.push_back(std::move(result));
  }
  return NewList(std::move(mapped), meter);
}

}  // namespace

absl::StatusOr<Value> ApplyFilter(std::string_view name, const Value& value,
                                  const Arguments& arguments, Meter& meter) {
  const Builtin* filter = FindBuiltin(kSimpleFilters, name);
  if (filter == nullptr) filter = FindBuiltin(kListFilters, name);
  return Apply(filter, name, value, arguments, meter);
}

}  // namespace setu::chat
