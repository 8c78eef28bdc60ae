// SPDX-License-Identifier: Apache-2.0
// Cuts a template into tokens, with the white space rules of trim_blocks and lstrip_blocks (both
// on, as chat templates are written for): the first line break after a block is dropped, and so is
// the space before a block that begins a line. "-" beside a tag strips all, "+" nothing.
#ifndef SETU_COMMON_CHAT_LEXER_H_
#define SETU_COMMON_CHAT_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace setu::chat {

enum class TokenKind {
  kData,        // text between tags
  kBlockBegin,  // {%
  kBlockEnd,
  kPrintBegin,  // {{
  kPrintEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,  // "+", "==", "(", ...
  kEnd,       // of the template
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // of strings and data: the value
  int64_t integer = 0;
  double real = 0;
  int line = 0;
};

// The last token is kEnd. INVALID_ARGUMENT names line and construct.
absl::StatusOr<std::vector<Token>> Lex(std::string_view source);

// "chat template line 3: ..."
absl::Status ErrorAt(int line, std::string_view message);
// Gives an error its line, if it has none yet.
absl::Status AtLine(int line, const absl::Status& error);

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_LEXER_H_
