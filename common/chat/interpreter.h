// SPDX-License-Identifier: Apache-2.0
// Runs a template's statements and collects what they write. One run each.
#ifndef SETU_COMMON_CHAT_INTERPRETER_H_
#define SETU_COMMON_CHAT_INTERPRETER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/chat/ast.h"
#include "common/chat/evaluator.h"
#include "common/chat/meter.h"
#include "common/chat/print.h"
#include "common/chat/scope.h"
#include "common/chat/value.h"

namespace setu::chat {

class Interpreter final : private MacroCaller {
 public:
  explicit Interpreter(Meter& meter) : meter_(meter), evaluator_(scope_, meter, *this) {}

  void Define(const std::string& name, Value value) { scope_.Set(name, std::move(value)); }
  // INVALID_ARGUMENT names line and construct. `body` must outlive this.
  absl::StatusOr<Text> Run(const Body& body);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  absl::StatusOr<Flow> Execute(const Body& body);
  absl::StatusOr<Flow> Node(const Data& data);
  absl::StatusOr<Flow> Node(const Output& output);
  absl::StatusOr<Flow> Node(const If& node);
  absl::StatusOr<Flow> Node(const For& node);
  absl::StatusOr<Flow> Node(const Set& node);
  absl::StatusOr<Flow> Node(const MacroDefinition& node);
  absl::StatusOr<Flow> Node(const Block& node) { return Execute(node.body); }
  absl::StatusOr<Flow> Node(const Break&) { return Flow::kBreak; }
  absl::StatusOr<Flow> Node(const Continue&) { return Flow::kContinue; }

  absl::StatusOr<ListPtr> LoopItems(const For& node);
  absl::Status Bind(const std::vector<std::string>& targets, const Value& value);
  // What `body` writes, apart from the output.
  absl::StatusOr<Text> Capture(const Body& body);
  absl::StatusOr<Value> CallMacro(const Macro& macro, const Arguments& arguments) override;

  Meter& meter_;
  Scope scope_;
  Evaluator evaluator_;
  TextWriter* out_ = nullptr;  // of the innermost capture
};

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_INTERPRETER_H_
