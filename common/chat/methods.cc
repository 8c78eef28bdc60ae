// SPDX-License-Identifier: Apache-2.0
#include "common/chat/methods.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/chat/print.h"
#include "common/chat/text_functions.h"

namespace setu::chat {
namespace {

using Result = absl::StatusOr<Value>;

absl::Status Needs(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("needs ", std::string(what)));
}

const Text& Self(const Value& value) { return *As<Text>(value); }  // FindMethod's promise

template <Side side>
Result StripMethod(const Value& value, const Arguments& arguments, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const auto characters, arguments.FindText(0, "chars"));
  std::optional<std::string_view> view;
  if (characters) view = (*characters)->view();
  SETU_RETURN_IF_ERROR(meter.Search(Self(value).size(), view ? view->size() : 0));
  return NewText(Strip(Self(value), view, side), meter);
}

template <Text (*change)(const Text&)>
Result ChangeMethod(const Value& value, const Arguments&, Meter& meter) {
  SETU_RETURN_IF_ERROR(meter.TextBytes(Self(value).size()));
  return NewText(change(Self(value)), meter);
}

Result SplitMethod(const Value& value, const Arguments& arguments, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const auto separator, arguments.FindText(0, "sep"));
  SETU_ASSIGN_OR_RETURN(const auto most, arguments.FindInteger(1, "maxsplit"));
  std::optional<std::string_view> view;
  if (separator) view = (*separator)->view();
  if (view && view->empty()) return Needs("a separator that is not empty");
  SETU_RETURN_IF_ERROR(meter.Search(Self(value).size(), view ? view->size() : 0));
  // A part takes more memory than its bytes: at worst there is one for each byte.
  SETU_RETURN_IF_ERROR(meter.Steps(Self(value).size() / 8));
  std::vector<Value> items;
  for (Text& part : Split(Self(value), view, most.value_or(-1))) {
    items.push_back(std::make_shared<const Text>(std::move(part)));
  }
  return NewList(std::move(items), meter);
}

Result ReplaceMethod(const Value& value, const Arguments& arguments, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const auto part, arguments.FindText(0, "old"));
  SETU_ASSIGN_OR_RETURN(const auto with, arguments.FindText(1, "new"));
  SETU_ASSIGN_OR_RETURN(const auto most, arguments.FindInteger(2, "count"));
  if (!part || !with) return Needs("an old and a new string");
  SETU_ASSIGN_OR_RETURN(Text text,
                        Replace(Self(value), (*part)->view(), **with, most.value_or(-1), meter));
  return NewText(std::move(text), meter);
}

// startswith and endswith: one text, or any of several.
template <bool at_start>
Result AffixMethod(const Value& value, const Arguments& arguments, Meter& meter) {
  const Value* wanted = arguments.Find(0, "prefix");
  if (wanted == nullptr) return Needs("a string");
  SETU_ASSIGN_OR_RETURN(const ListPtr choices,
                        As<Text>(*wanted) != nullptr
                            ? ListPtr(std::make_shared<List>(List{{*wanted}}))
                            : Iterate(*wanted, meter));
  for (const Value& choice : choices->items) {
    const Text* affix = As<Text>(choice);
    if (affix == nullptr) return Needs("a string");
    SETU_RETURN_IF_ERROR(meter.TextBytes(affix->size()));
    const std::string_view view = Self(value).view();
    if (at_start ? view.starts_with(affix->view()) : view.ends_with(affix->view())) return true;
  }
  return false;
}

// How many bytes a prefix or suffix takes, if the text has it.
template <bool at_start>
Result RemoveAffixMethod(const Value& value, const Arguments& arguments, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const auto affix, arguments.FindText(0, "prefix"));
  if (!affix) return Needs("a string");
  SETU_RETURN_IF_ERROR(meter.TextBytes((*affix)->size()));
  const std::string_view view = Self(value).view();
  const std::string_view wanted = (*affix)->view();
  if (at_start && view.starts_with(wanted)) {
    return NewText(Self(value).Part(wanted.size(), view.size()), meter);
  }
  if (!at_start && view.ends_with(wanted)) {
    return NewText(Self(value).Part(0, view.size() - wanted.size()), meter);
  }
  return value;
}

Result FindMethodOfText(const Value& value, const Arguments& arguments, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const auto part, arguments.FindText(0, "sub"));
  if (!part) return Needs("a string");
  SETU_RETURN_IF_ERROR(meter.Search(Self(value).size(), (*part)->size()));
  const std::string_view view = Self(value).view();
  const size_t found = view.find((*part)->view());
  if (found == view.npos) return int64_t{-1};
  return static_cast<int64_t>(CharacterOffsets(view.substr(0, found)).size()) - 1;
}

Result CountMethod(const Value& value, const Arguments& arguments, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const auto part, arguments.FindText(0, "sub"));
  if (!part || (*part)->empty()) return Needs("a string that is not empty");
  SETU_RETURN_IF_ERROR(meter.Search(Self(value).size(), (*part)->size()));
  const std::string_view view = Self(value).view();
  int64_t count = 0;
  for (size_t at = view.find((*part)->view()); at != view.npos;
       at = view.find((*part)->view(), at + (*part)->size())) {
    ++count;
  }
  return count;
}

Result JoinMethod(const Value& value, const Arguments& arguments, Meter& meter) {
  const Value* items = arguments.Find(0, "iterable");
  if (items == nullptr) return Needs("a list");
  SETU_ASSIGN_OR_RETURN(const ListPtr list, Iterate(*items, meter));
  TextWriter writer(meter);
  for (size_t i = 0; i < list->items.size(); ++i) {
    const Text* text = As<Text>(list->items[i]);
    if (text == nullptr) return Needs("a list of strings");
    if (i > 0) SETU_RETURN_IF_ERROR(writer.Append(Self(value)));
    SETU_RETURN_IF_ERROR(writer.Append(*text));
  }
  return NewText(writer.Take(), meter);
}

Result GetMethod(const Value& value, const Arguments& arguments, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(const auto key, arguments.FindText(0, "key"));
  SETU_RETURN_IF_ERROR(meter.Steps(1 + As<Dict>(value)->items.size() / 8));
  const Value* found = key ? As<Dict>(value)->Find((*key)->view()) : nullptr;
  if (found != nullptr) return *found;
  const Value* otherwise = arguments.Find(1, "default");
  return otherwise == nullptr ? Value(None{}) : *otherwise;
}

Result KeysMethod(const Value& value, const Arguments&, Meter& meter) {
  SETU_ASSIGN_OR_RETURN(ListPtr keys, Iterate(value, meter));
  return Value(std::move(keys));
}

Result ValuesMethod(const Value& value, const Arguments&, Meter& meter) {
  std::vector<Value> values;
  SETU_RETURN_IF_ERROR(meter.Steps(As<Dict>(value)->items.size()));
  for (const auto& [key, item] : As<Dict>(value)->items) values.push_back(item);
  return NewList(std::move(values), meter);
}

Result ItemsMethod(const Value& value, const Arguments&, Meter& meter) {
  std::vector<Value> items;
  for (const auto& [key, item] : As<Dict>(value)->items) {
    SETU_ASSIGN_OR_RETURN(Value pair, NewList({key, item}, meter));
    items.push_back(std::move(pair));
  }
  return NewList(std::move(items), meter);
}

Result CycleMethod(const Value& value, const Arguments& arguments, Meter&) {
  const std::vector<Value>& choices = arguments.positional;
  if (choices.empty()) return Needs("values to cycle through");
  return choices[As<Loop>(value)->index % choices.size()];
}

constexpr std::string_view kChars[] = {"chars"};
constexpr std::string_view kSplit[] = {"sep", "maxsplit"};
constexpr std::string_view kReplace[] = {"old", "new", "count"};
constexpr std::string_view kPrefix[] = {"prefix"};
constexpr std::string_view kSub[] = {"sub"};
constexpr std::string_view kIterable[] = {"iterable"};
constexpr std::string_view kGet[] = {"key", "default"};
constexpr std::string_view kAny[16] = {};

constexpr Builtin kTextMethods[] = {
    {"strip", kChars, StripMethod<Side::kBoth>},
    {"lstrip", kChars, StripMethod<Side::kLeft>},
    {"rstrip", kChars, StripMethod<Side::kRight>},
    {"upper", {}, ChangeMethod<Upper>},
    {"lower", {}, ChangeMethod<Lower>},
    {"title", {}, ChangeMethod<Title>},
    {"capitalize", {}, ChangeMethod<Capitalize>},
    {"split", kSplit, SplitMethod},
    {"replace", kReplace, ReplaceMethod},
    {"startswith", kPrefix, AffixMethod<true>},
    {"endswith", kPrefix, AffixMethod<false>},
    {"removeprefix", kPrefix, RemoveAffixMethod<true>},
    {"removesuffix", kPrefix, RemoveAffixMethod<false>},
    {"find", kSub, FindMethodOfText},
    {"count", kSub, CountMethod},
    {"join", kIterable, JoinMethod},
};

constexpr Builtin kDictMethods[] = {
    {"get", kGet, GetMethod},
    {"keys", {}, KeysMethod},
    {"values", {}, ValuesMethod},
    {"items", {}, ItemsMethod},
};

constexpr Builtin kLoopMethods[] = {{"cycle", kAny, CycleMethod}};

}  // namespace

const Builtin* FindMethod(const Value& value, std::string_view name) {
  if (As<Text>(value) != nullptr) return FindBuiltin(kTextMethods, name);
  if (As<Dict>(value) != nullptr) return FindBuiltin(kDictMethods, name);
  if (As<Loop>(value) != nullptr) return FindBuiltin(kLoopMethods, name);
  return nullptr;
}

}  // namespace setu::chat
