// SPDX-License-Identifier: Apache-2.0
// The tokens of a template with a place in them, and how deep the parser has gone.
#ifndef SETU_COMMON_CHAT_TOKEN_STREAM_H_
#define SETU_COMMON_CHAT_TOKEN_STREAM_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/utf8.h"
#include "common/chat/lexer.h"

namespace setu::chat {

class TokenStream {
 public:
  // `tokens` end with kEnd.
  TokenStream(std::vector<Token> tokens, size_t max_depth)
      : tokens_(std::move(tokens)), max_depth_(max_depth) {}

  // Stays at kEnd.
  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  int line() const { return Peek().line; }
  Token Take() {
    Token token = Peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }

  bool IsOperator(std::string_view text) const { return Is(TokenKind::kOperator, text); }
  bool IsName(std::string_view text) const { return Is(TokenKind::kName, text); }
  bool TakeOperator(std::string_view text) { return IsOperator(text) && (Take(), true); }
  bool TakeName(std::string_view text) { return IsName(text) && (Take(), true); }

  // An error that names what stands there instead.
  absl::Status Unexpected(std::string_view wanted) const {
    const Token& token = Peek();
    std::string_view found = token.text;
    if (token.kind == TokenKind::kEnd) found = "the end of the template";
    if (token.kind == TokenKind::kBlockEnd) found = "%}";
    if (token.kind == TokenKind::kPrintEnd) found = "}}";
    if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) found = "a number";
    return ErrorAt(token.line, absl::StrCat("expected ", std::string(wanted), ", found '",
                                            std::string(Utf8Start(found, 40)), "'"));
  }
  absl::Status Expect(TokenKind kind, std::string_view wanted) {
    if (Peek().kind != kind) return Unexpected(wanted);
    Take();
    return absl::OkStatus();
  }
  absl::Status ExpectOperator(std::string_view text) {
    return TakeOperator(text) ? absl::OkStatus() : Unexpected(text);
  }
  absl::Status ExpectName(std::string_view text) {
    return TakeName(text) ? absl::OkStatus() : Unexpected(text);
  }

  // One level of nesting, for as long as it lives.
  class Level {
   public:
    explicit Level(TokenStream& stream) : stream_(stream) { ++stream_.depth_; }
    ~Level() { --stream_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    absl::Status Check() const {
      if (stream_.depth_ <= stream_.max_depth_) return absl::OkStatus();
      return ErrorAt(stream_.line(), absl::StrCat("nests deeper than ", stream_.max_depth_));
    }

   private:
    TokenStream& stream_;
  };

 private:
  bool Is(TokenKind kind, std::string_view text) const {
    return Peek().kind == kind && Peek().text == text;
  }

  const std::vector<Token> tokens_;
  const size_t max_depth_;
  size_t at_ = 0;
  size_t depth_ = 0;
};

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_TOKEN_STREAM_H_
