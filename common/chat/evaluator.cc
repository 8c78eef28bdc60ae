// SPDX-License-Identifier: Apache-2.0
#include "common/chat/evaluator.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/chat/filters.h"
#include "common/chat/lexer.h"
#include "common/chat/methods.h"
#include "common/chat/operators.h"
#include "common/chat/print.h"
#include "common/chat/tests.h"

namespace setu::chat {
namespace {

// One level of the source may take this many calls of Evaluate; macros add levels.
constexpr size_t kCallsPerLevel = 8;

absl::Status Wrong(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

Value NewText(std::string_view text) {
  return std::make_shared<const Text>(std::string(text), false);
}

// range(stop), range(start, stop), range(start, stop, step)
absl::StatusOr<Value> Range(const Arguments& arguments, Meter& meter) {
  int64_t bounds[3] = {0, 0, 1};
  const size_t count = arguments.positional.size();
  if (count < 1 || count > 3) return Wrong("range takes 1 to 3 integers");
  for (size_t i = 0; i < count; ++i) {
    SETU_ASSIGN_OR_RETURN(const auto bound, arguments.FindInteger(i, ""));
    bounds[count == 1 ? 1 : i] = bound.value_or(0);
  }
  const auto [start, stop, step] = bounds;
  if (step == 0) return Wrong("range has a step of 0");
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    SETU_RETURN_IF_ERROR(meter.Steps(1));
    items.push_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return NewList(std::move(items), meter);
}

// The pairs of dict(...) and namespace(...): of a mapping, then by name.
std::vector<std::pair<TextPtr, Value>> NamedItems(const Arguments& arguments) {
  std::vector<std::pair<TextPtr, Value>> items;
  for (const Value& value : arguments.positional) {
    if (const Dict* dict = As<Dict>(value)) {
      items.insert(items.end(), dict->items.begin(), dict->items.end());
    }
  }
  for (const auto& [name, value] : arguments.named) {
    items.emplace_back(std::make_shared<const Text>(name, false), value);
  }
  return items;
}

}  // namespace

absl::StatusOr<Value> Evaluator::Evaluate(const Expr& expr) {
  ++depth_;
  absl::StatusOr<Value> value = EvaluateNode(expr);
  --depth_;
  if (value.ok()) return value;
  return AtLine(expr.line, value.status());
}

absl::StatusOr<Value> Evaluator::EvaluateNode(const Expr& expr) {
  SETU_RETURN_IF_ERROR(meter_.Steps(1));
  SETU_RETURN_IF_ERROR(meter_.Depth(depth_ / kCallsPerLevel));
  return std::visit([&](const auto& node) { return Node(node); }, expr.node);
}

absl::StatusOr<bool> Evaluator::IsTrue(const Expr& expr) {
  SETU_ASSIGN_OR_RETURN(const Value value, Evaluate(expr));
  return chat::IsTrue(value);
}

absl::StatusOr<Value> Evaluator::Node(const ListDisplay& list) {
  std::vector<Value> items;
  for (const ExprPtr& item : list.items) {
    SETU_ASSIGN_OR_RETURN(Value value, Evaluate(*item));
    items.push_back(std::move(value));
  }
  return NewList(std::move(items), meter_);
}

absl::StatusOr<Value> Evaluator::Node(const DictDisplay& dict) {
  std::vector<std::pair<TextPtr, Value>> items;
  for (const auto& [key_expr, value_expr] : dict.items) {
    SETU_ASSIGN_OR_RETURN(const Value key, Evaluate(*key_expr));
    const auto* text = std::get_if<TextPtr>(&key);
    if (text == nullptr) return Wrong("a mapping's key must be a string");
    SETU_ASSIGN_OR_RETURN(Value value, Evaluate(*value_expr));
    items.emplace_back(*text, std::move(value));
  }
  return NewDict(items, meter_);
}

absl::StatusOr<Value> Evaluator::Node(const Conditional& conditional) {
  SETU_ASSIGN_OR_RETURN(const bool holds, IsTrue(*conditional.condition));
  if (holds) return Evaluate(*conditional.then);
  if (conditional.otherwise == nullptr) return Value(Undefined{});
  return Evaluate(*conditional.otherwise);
}

absl::StatusOr<Value> Evaluator::Node(const Negation& negation) {
  SETU_ASSIGN_OR_RETURN(const bool holds, IsTrue(*negation.operand));
  return Value(!holds);
}

absl::StatusOr<Value> Evaluator::Node(const Sign& sign) {
  SETU_ASSIGN_OR_RETURN(Value value, Evaluate(*sign.operand));
  return sign.negative ? Negate(value) : absl::StatusOr<Value>(std::move(value));
}

// The value that decides, not a boolean: none or 'x' is 'x'.
absl::StatusOr<Value> Evaluator::Node(const Logic& logic) {
  Value value;
  for (const ExprPtr& operand : logic.operands) {
    SETU_ASSIGN_OR_RETURN(value, Evaluate(*operand));
    if (chat::IsTrue(value) != logic.is_and) break;
  }
  return value;
}

absl::StatusOr<Value> Evaluator::Node(const Operation& operation) {
  SETU_ASSIGN_OR_RETURN(Value left, Evaluate(*operation.first));
  for (const auto& [op, operand] : operation.rest) {
    SETU_ASSIGN_OR_RETURN(const Value right, Evaluate(*operand));
    SETU_ASSIGN_OR_RETURN(left, Calculate(op, left, right, meter_));
  }
  return left;
}

absl::StatusOr<Value> Evaluator::Node(const Comparison& comparison) {
  SETU_ASSIGN_OR_RETURN(Value left, Evaluate(*comparison.first));
  for (const auto& [op, operand] : comparison.rest) {
    SETU_ASSIGN_OR_RETURN(Value right, Evaluate(*operand));
    SETU_ASSIGN_OR_RETURN(const bool holds, CompareBy(op, left, right, meter_));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

absl::StatusOr<Value> Evaluator::Node(const Chain& chain) {
  SETU_ASSIGN_OR_RETURN(Value value, Evaluate(*chain.base));
  for (size_t i = 0; i < chain.links.size(); ++i) {
    SETU_RETURN_IF_ERROR(meter_.Steps(1));
    const auto* attribute = std::get_if<Attribute>(&chain.links[i]);
    const auto* call =
        i + 1 < chain.links.size() ? std::get_if<Call>(&chain.links[i + 1]) : nullptr;
    const Builtin* method =
        attribute != nullptr && call != nullptr ? FindMethod(value, attribute->name) : nullptr;
    if (method != nullptr) {
      SETU_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(call->arguments));
      absl::Status status = arguments.Check(method->parameters);
      absl::StatusOr<Value> result =
          status.ok() ? method->call(value, arguments, meter_) : absl::StatusOr<Value>(status);
      if (!result.ok()) {
        return Wrong(
            absl::StrCat("'.", attribute->name, "()': ", std::string(result.status().message())));
      }
      value = *std::move(result);
      ++i;
      continue;
    }
    absl::StatusOr<Value> next =
        std::visit([&](const auto& link) { return Follow(link, value); }, chain.links[i]);
    if (!next.ok()) {
      const auto* base = std::get_if<Name>(&chain.base->node);
      if (i > 0 || base == nullptr || !std::holds_alternative<Undefined>(value)) {
        return next.status();
      }
      return Wrong(absl::StrCat("'", base->name, "': ", std::string(next.status().message())));
    }
    value = *std::move(next);
  }
  return value;
}

absl::StatusOr<Value> Evaluator::Follow(const Attribute& link, const Value& value) {
  if (const Loop* loop = As<Loop>(value)) return LoopAttribute(*loop, link.name);
  return Item(value, NewText(link.name), meter_);
}

absl::StatusOr<Value> Evaluator::Follow(const Subscript& link, const Value& value) {
  SETU_ASSIGN_OR_RETURN(const Value index, Evaluate(*link.index));
  const Text* name = As<Text>(index);
  const Loop* loop = As<Loop>(value);
  if (name != nullptr && loop != nullptr) return LoopAttribute(*loop, name->view());
  return Item(value, index, meter_);
}

absl::StatusOr<Value> Evaluator::Follow(const Slice& link, const Value& value) {
  SliceBounds bounds;
  for (auto [expr, bound] : {std::pair(&link.start, &bounds.start),
                             {&link.stop, &bounds.stop},
                             {&link.step, &bounds.step}}) {
    if (*expr == nullptr) continue;
    SETU_ASSIGN_OR_RETURN(Value number, Evaluate(**expr));
    if (std::holds_alternative<None>(number)) continue;
    const auto* integer = std::get_if<int64_t>(&number);
    if (integer == nullptr) return Wrong("a slice's bound must be an integer");
    *bound = *integer;
  }
  return SliceOf(value, bounds, meter_);
}

absl::StatusOr<Value> Evaluator::Follow(const Call& link, const Value& value) {
  SETU_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(link.arguments));
  if (const auto* macro = std::get_if<const Macro*>(&value)) {
    return macros_.CallMacro(**macro, arguments);
  }
  if (const auto* function = std::get_if<Function>(&value)) {
    return CallFunction(*function, arguments);
  }
  return Wrong(absl::StrCat("cannot call ", std::string(TypeName(value))));
}

absl::StatusOr<Value> Evaluator::Follow(const Filter& link, const Value& value) {
  SETU_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(link.arguments));
  return ApplyFilter(link.name, value, arguments, meter_);
}

absl::StatusOr<Value> Evaluator::Follow(const Test& link, const Value& value) {
  SETU_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(link.arguments));
  SETU_ASSIGN_OR_RETURN(const bool holds, ApplyTest(link.name, value, arguments, meter_));
  return Value(holds != link.negated);
}

absl::StatusOr<Arguments> Evaluator::EvaluateArguments(const std::vector<Argument>& arguments) {
  Arguments values;
  for (const Argument& argument : arguments) {
    SETU_ASSIGN_OR_RETURN(Value value, Evaluate(*argument.value));
    if (argument.name.empty()) {
      values.positional.push_back(std::move(value));
    } else {
      values.named.emplace_back(argument.name, std::move(value));
    }
  }
  return values;
}

absl::StatusOr<Value> Evaluator::CallFunction(Function function, const Arguments& arguments) {
  switch (function) {
    case Function::kRange:
      return Range(arguments, meter_);
    case Function::kDict:
      return NewDict(NamedItems(arguments), meter_);
    case Function::kNamespace: {
      Namespace& space = namespaces_.emplace_back();
      for (auto& [name, value] : NamedItems(arguments)) {
        space.attributes.insert_or_assign(std::string(name->view()), value);
      }
      return Value(&space);
    }
    case Function::kRaiseException:
      break;
  }
  Text message;
  if (const Value* value = arguments.Find(0, "message")) {
    SETU_ASSIGN_OR_RETURN(message, ToText(*value, meter_));
  }
  constexpr size_t kMaxMessageBytes = 200;
  return Wrong(absl::StrCat("raised: ", std::string(Utf8Start(message.view(), kMaxMessageBytes))));
}

absl::StatusOr<Value> Evaluator::LoopAttribute(const Loop& loop, std::string_view name) {
  const std::vector<Value>& items = loop.items->items;
  const auto index = static_cast<int64_t>(loop.index);
  const auto length = static_cast<int64_t>(items.size());
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(length - index);
  if (name == "revindex0") return Value(length - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == length);
  if (name == "length") return Value(length);
  if (name == "previtem") return index == 0 ? Value(Undefined{}) : items[loop.index - 1];
  if (name == "nextitem") return index + 1 == length ? Value(Undefined{}) : items[loop.index + 1];
  return Wrong(absl::StrCat("'loop.", std::string(name), "' is not known"));
}

}  // namespace setu::chat
