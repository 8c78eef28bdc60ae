// SPDX-License-Identifier: Apache-2.0
// Gives expressions their values.
#ifndef SETU_COMMON_CHAT_EVALUATOR_H_
#define SETU_COMMON_CHAT_EVALUATOR_H_

#include <cstddef>
#include <deque>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/chat/arguments.h"
#include "common/chat/ast.h"
#include "common/chat/meter.h"
#include "common/chat/scope.h"
#include "common/chat/value.h"

namespace setu::chat {

// Runs a macro's body; the interpreter of statements does.
class MacroCaller {
 public:
  virtual ~MacroCaller() = default;
  virtual absl::StatusOr<Value> CallMacro(const Macro& macro, const Arguments& arguments) = 0;
};

class Evaluator {
 public:
  // All must outlive this, and this the values that it made: it owns the namespaces.
  Evaluator(Scope& scope, Meter& meter, MacroCaller& macros)
      : scope_(scope), meter_(meter), macros_(macros) {}

  // INVALID_ARGUMENT names line and construct.
  absl::StatusOr<Value> Evaluate(const Expr& expr);
  absl::StatusOr<bool> IsTrue(const Expr& expr);

 private:
  absl::StatusOr<Value> EvaluateNode(const Expr& expr);
  absl::StatusOr<Value> Node(const Literal& literal) { return literal.value; }
  absl::StatusOr<Value> Node(const Name& name) { return scope_.Get(name.name); }
  absl::StatusOr<Value> Node(const ListDisplay& list);
  absl::StatusOr<Value> Node(const DictDisplay& dict);
  absl::StatusOr<Value> Node(const Conditional& conditional);
  absl::StatusOr<Value> Node(const Negation& negation);
  absl::StatusOr<Value> Node(const Sign& sign);
  absl::StatusOr<Value> Node(const Logic& logic);
  absl::StatusOr<Value> Node(const Operation& operation);
  absl::StatusOr<Value> Node(const Comparison& comparison);
  absl::StatusOr<Value> Node(const Chain& chain);

  absl::StatusOr<Value> Follow(const Attribute& link, const Value& value);
  absl::StatusOr<Value> Follow(const Subscript& link, const Value& value);
  absl::StatusOr<Value> Follow(const Slice& link, const Value& value);
  absl::StatusOr<Value> Follow(const Call& link, const Value& value);
  absl::StatusOr<Value> Follow(const Filter& link, const Value& value);
  absl::StatusOr<Value> Follow(const Test& link, const Value& value);

  absl::StatusOr<Arguments> EvaluateArguments(const std::vector<Argument>& arguments);
  absl::StatusOr<Value> CallFunction(Function function, const Arguments& arguments);
  absl::StatusOr<Value> LoopAttribute(const Loop& loop, std::string_view name);

  Scope& scope_;
  Meter& meter_;
  MacroCaller& macros_;
  std::deque<Namespace> namespaces_;
  size_t depth_ = 0;
};

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_EVALUATOR_H_
