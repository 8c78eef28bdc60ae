// SPDX-License-Identifier: Apache-2.0
// Renders a chat with the template of a model file: an interpreter of the Jinja subset that model
// templates use. The template is untrusted: no host objects, and limits on steps, depth and output.
//
//   SETU_ASSIGN_OR_RETURN(auto chat, ChatTemplate::Parse(source));
//   SETU_ASSIGN_OR_RETURN(RenderedChat r, chat->Render({.messages = {{"user", "Hi"}}}));
//   // Only template text may become control tokens: encode r.pieces one by one.
#ifndef SETU_COMMON_CHAT_CHAT_TEMPLATE_H_
#define SETU_COMMON_CHAT_CHAT_TEMPLATE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace setu::chat {

struct Message {
  std::string role;
  std::string content;
};

struct ChatInput {
  std::vector<Message> messages;
  bool add_generation_prompt = true;
  std::string bos_token;
  std::string eos_token;
};

// Runs of text by origin: template text (control tokens are parsed) or user text (never).
struct Piece {
  std::string text;
  bool from_user = false;
};

struct RenderedChat {
  std::vector<Piece> pieces;  // adjacent pieces differ in origin
  std::string Text() const;
};

struct Limits {
  size_t source_bytes = 1 << 16;
  size_t steps = 1'000'000;
  size_t depth = 64;
  size_t output_bytes = 4 << 20;
};

class ChatTemplate {
 public:
  // INVALID_ARGUMENT names line and construct.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Parse(std::string_view source,
                                                             const Limits& limits = {});
  ~ChatTemplate();
  // INVALID_ARGUMENT where the template raises (raise_exception) or a limit is passed.
  absl::StatusOr<RenderedChat> Render(const ChatInput& input) const;

 private:
  struct Program;
  explicit ChatTemplate(std::unique_ptr<Program> program, const Limits& limits);
  std::unique_ptr<Program> program_;
  Limits limits_;
};

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_CHAT_TEMPLATE_H_
