// SPDX-License-Identifier: Apache-2.0
#include "common/chat/chat_template.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/chat/ast.h"
#include "common/chat/interpreter.h"
#include "common/chat/lexer.h"
#include "common/chat/meter.h"
#include "common/chat/parser.h"

namespace setu::chat {
namespace {

TextPtr NewText(const std::string& text, bool from_user) {
  return std::make_shared<const Text>(text, from_user);
}

absl::StatusOr<Value> MessageList(const std::vector<Message>& messages, Meter& meter) {
  const TextPtr role = NewText("role", false);
  const TextPtr content = NewText("content", false);
  std::vector<Value> list;
  for (const Message& message : messages) {
    SETU_ASSIGN_OR_RETURN(Value item, NewDict({{role, NewText(message.role, true)},
                                               {content, NewText(message.content, true)}},
                                              meter));
    list.push_back(std::move(item));
  }
  return NewList(std::move(list), meter);
}

}  // namespace

struct ChatTemplate::Program {
  Body body;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Program> program, const Limits& limits)
    : program_(std::move(program)), limits_(limits) {}

ChatTemplate::~ChatTemplate() = default;

std::string RenderedChat::Text() const {
  std::string text;
  for (const Piece& piece : pieces) text += piece.text;
  return text;
}

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Parse(std::string_view source,
                                                                  const Limits& limits) {
  if (source.size() > limits.source_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("chat template has ", source.size(), " bytes; at most ", limits.source_bytes));
  }
  if (const size_t valid = ValidUtf8Prefix(source); valid != source.size()) {
    const auto line = 1 + std::count(source.begin(), source.begin() + valid, '\n');
    return ErrorAt(static_cast<int>(line), "is not valid UTF-8");
  }
  auto program = std::make_unique<Program>();
  SETU_ASSIGN_OR_RETURN(program->body, ParseTemplate(source, limits.depth));
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(program), limits));
}

absl::StatusOr<RenderedChat> ChatTemplate::Render(const ChatInput& input) const {
  Meter meter(limits_);
  Interpreter interpreter(meter);
  SETU_ASSIGN_OR_RETURN(Value messages, MessageList(input.messages, meter));
  interpreter.Define("messages", std::move(messages));
  interpreter.Define("add_generation_prompt", input.add_generation_prompt);
  interpreter.Define("bos_token", NewText(input.bos_token, false));
  interpreter.Define("eos_token", NewText(input.eos_token, false));
  interpreter.Define("tools", None{});
  interpreter.Define("documents", None{});
  interpreter.Define("range", Function::kRange);
  interpreter.Define("dict", Function::kDict);
  interpreter.Define("namespace", Function::kNamespace);
  interpreter.Define("raise_exception", Function::kRaiseException);
  SETU_ASSIGN_OR_RETURN(const chat::Text text, interpreter.Run(program_->body));
  return RenderedChat{text.Pieces()};
}

}  // namespace setu::chat
