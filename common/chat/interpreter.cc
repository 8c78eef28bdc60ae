// SPDX-License-Identifier: Apache-2.0
#include "common/chat/interpreter.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/chat/lexer.h"

namespace setu::chat {

absl::StatusOr<Text> Interpreter::Run(const Body& body) { return Capture(body); }

absl::StatusOr<Text> Interpreter::Capture(const Body& body) {
  TextWriter writer(meter_);
  TextWriter* outer = std::exchange(out_, &writer);
  const absl::StatusOr<Flow> flow = Execute(body);
  out_ = outer;
  if (!flow.ok()) return flow.status();
  return writer.Take();
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const Body& body) {
  for (const Statement& statement : body) {
    SETU_RETURN_IF_ERROR(meter_.Steps(1));
    const absl::StatusOr<Flow> flow =
        std::visit([&](const auto& node) { return Node(node); }, statement.node);
    if (!flow.ok()) return AtLine(statement.line, flow.status());
    if (*flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Node(const Data& data) {
  SETU_RETURN_IF_ERROR(out_->Append(data.text));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Node(const Output& output) {
  SETU_ASSIGN_OR_RETURN(const Value value, evaluator_.Evaluate(*output.value));
  SETU_RETURN_IF_ERROR(Print(value, *out_));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Node(const If& node) {
  for (const auto& [condition, body] : node.branches) {
    SETU_ASSIGN_OR_RETURN(const bool holds, evaluator_.IsTrue(*condition));
    if (holds) return Execute(body);
  }
  return Execute(node.otherwise);
}

absl::StatusOr<Interpreter::Flow> Interpreter::Node(const For& node) {
  SETU_ASSIGN_OR_RETURN(const ListPtr items, LoopItems(node));
  if (items->items.empty()) return Execute(node.otherwise);
  for (size_t i = 0; i < items->items.size(); ++i) {
    SETU_RETURN_IF_ERROR(meter_.Steps(1));
    const Scope::Inner round(scope_, false);
    scope_.Set("loop", std::make_shared<const Loop>(Loop{items, i}));
    SETU_RETURN_IF_ERROR(Bind(node.targets, items->items[i]));
    SETU_ASSIGN_OR_RETURN(const Flow flow, Execute(node.body));
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNext;
}

absl::StatusOr<ListPtr> Interpreter::LoopItems(const For& node) {
  SETU_ASSIGN_OR_RETURN(const Value value, evaluator_.Evaluate(*node.items));
  SETU_ASSIGN_OR_RETURN(ListPtr all, Iterate(value, meter_));
  if (node.condition == nullptr) return all;
  std::vector<Value> chosen;
  for (const Value& item : all->items) {
    const Scope::Inner round(scope_, false);
    SETU_RETURN_IF_ERROR(Bind(node.targets, item));
    SETU_ASSIGN_OR_RETURN(const bool holds, evaluator_.IsTrue(*node.condition));
    if (holds) chosen.push_back(item);
  }
  SETU_ASSIGN_OR_RETURN(const Value list, NewList(std::move(chosen), meter_));
  return std::get<ListPtr>(list);
}

absl::Status Interpreter::Bind(const std::vector<std::string>& targets, const Value& value) {
  if (targets.size() == 1) {
    scope_.Set(targets[0], value);
    return absl::OkStatus();
  }
  SETU_ASSIGN_OR_RETURN(const ListPtr list, Iterate(value, meter_));
  if (list->items.size() != targets.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unpacks ", list->items.size(), " values into ", targets.size(), " names"));
  }
  for (size_t i = 0; i < targets.size(); ++i) scope_.Set(targets[i], list->items[i]);
  return absl::OkStatus();
}

absl::StatusOr<Interpreter::Flow> Interpreter::Node(const Set& node) {
  Value value;
  if (node.value != nullptr) {
    SETU_ASSIGN_OR_RETURN(value, evaluator_.Evaluate(*node.value));
  } else {
    SETU_ASSIGN_OR_RETURN(Text text, Capture(node.body));
    SETU_ASSIGN_OR_RETURN(value, NewText(std::move(text), meter_));
  }
  if (node.attribute.empty()) {
    SETU_RETURN_IF_ERROR(Bind(node.targets, value));
    return Flow::kNext;
  }
  const Value target = scope_.Get(node.targets[0]);
  const auto* space = std::get_if<Namespace*>(&target);
  if (space == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("cannot set '", node.targets[0], ".",
                                                   node.attribute, "': '", node.targets[0],
                                                   "' is no namespace"));
  }
  (*space)->attributes.insert_or_assign(node.attribute, std::move(value));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Node(const MacroDefinition& node) {
  scope_.Set(node.macro->name, node.macro.get());
  return Flow::kNext;
}

absl::StatusOr<Value> Interpreter::CallMacro(const Macro& macro, const Arguments& arguments) {
  std::vector<std::string_view> names;
  for (const Argument& parameter : macro.parameters) names.push_back(parameter.name);
  SETU_RETURN_IF_ERROR(arguments.Check(names));
  const Scope::Inner frame(scope_, true);
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Argument& parameter = macro.parameters[i];
    Value value;
    if (const Value* given = arguments.Find(i, parameter.name)) {
      value = *given;
    } else if (parameter.value != nullptr) {
      SETU_ASSIGN_OR_RETURN(value, evaluator_.Evaluate(*parameter.value));
    }
    scope_.Set(parameter.name, std::move(value));
  }
  SETU_ASSIGN_OR_RETURN(Text text, Capture(macro.body));
  return NewText(std::move(text), meter_);
}

}  // namespace setu::chat
