// SPDX-License-Identifier: Apache-2.0
#include "common/chat/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/chat/string_literal.h"
#include "common/chat/text.h"

namespace setu::chat {
namespace {

constexpr const char* kLinePrefix = "chat template line ";
constexpr size_t kMaxMessageBytes = 400;  // names and numbers of a template are of any length

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsName(char c) { return IsNameStart(c) || IsDigit(c); }
bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Line breaks become "\n", and the one at the very end goes.
std::string NormalizeLines(std::string_view source) {
  std::string text;
  for (size_t at = 0; at < source.size(); ++at) {
    if (source[at] == '\r') {
      text += '\n';
      if (source.substr(at + 1, 1) == "\n") ++at;
    } else {
      text += source[at];
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (at_ < source_.size()) SETU_RETURN_IF_ERROR(LexData());
    Add(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  // Text up to the next tag, then the tag.
  absl::Status LexData() {
    size_t tag = source_.find('{', at_);
    while (tag != source_.npos && !IsTag(tag)) tag = source_.find('{', tag + 1);
    if (tag == source_.npos) {
      AddData(source_.substr(at_));
      at_ = source_.size();
      return absl::OkStatus();
    }
    const char kind = source_[tag + 1];
    AddDataBefore(tag, kind != '{');
    at_ = tag + 2;
    if (Peek() == '-' || Peek() == '+') ++at_;
    if (kind == '#') return LexComment();
    if (kind == '{') return LexTag(TokenKind::kPrintBegin, TokenKind::kPrintEnd, '}');
    if (const std::optional<size_t> end = RawBegin()) return LexRaw(*end);
    return LexTag(TokenKind::kBlockBegin, TokenKind::kBlockEnd, '%');
  }

  bool IsTag(size_t at) const {
    const std::string_view next = source_.substr(at + 1, 1);
    return next == "{" || next == "%" || next == "#";
  }

  char Peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  // The text from at_ to `tag`, without what the tag's own rules strip.
  void AddDataBefore(size_t tag, bool lstrip) {
    std::string_view data = source_.substr(at_, tag - at_);
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    if (sign == '-') {
      AddData(Strip(Text(std::string(data), false), std::nullopt, Side::kRight).view());
    } else {
      const size_t line = data.rfind('\n') == data.npos ? 0 : data.rfind('\n') + 1;
      const bool starts_line = line > 0 || line_starts_;
      if (lstrip && sign != '+' && starts_line && AllSpace(data.substr(line))) {
        data = data.substr(0, line);
      }
      AddData(data);
    }
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                         source_.begin() + static_cast<ptrdiff_t>(tag), '\n'));
  }

  static bool AllSpace(std::string_view text) {
    return Strip(Text(std::string(text), false), std::nullopt, Side::kLeft).empty();
  }

  void AddData(std::string_view data) {
    if (data.empty()) return;
    Add(TokenKind::kData);
    tokens_.back().text = data;
  }

  void Add(TokenKind kind) { tokens_.push_back({.kind = kind, .text = {}, .line = line_}); }

  // Moves behind the end of a tag, "%}" for example, and what its rules strip.
  void EndTag(bool strip, bool trim) {
    const size_t begin = at_;
    at_ += 2;
    if (strip) {
      while (at_ < source_.size() && IsSpace(source_[at_])) ++at_;
    } else if (trim && Peek() == '\n') {
      ++at_;
    }
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(begin),
                                         source_.begin() + static_cast<ptrdiff_t>(at_), '\n'));
    line_starts_ = source_[at_ - 1] == '\n';
  }

  absl::Status LexComment() {
    const size_t end = source_.find("#}", at_);
    if (end == source_.npos) return ErrorAt(line_, "comment '{#' has no end");
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                         source_.begin() + static_cast<ptrdiff_t>(end), '\n'));
    const char sign = end > at_ ? source_[end - 1] : '\0';
    at_ = end;
    EndTag(sign == '-', sign != '+');
    return absl::OkStatus();
  }

  // Behind "raw" and the end of its tag, where at_ stands in such a tag.
  std::optional<size_t> RawBegin() const { return NamedTagEnd(at_, "raw"); }

  std::optional<size_t> NamedTagEnd(size_t at, std::string_view name) const {
    const auto skip_space = [&] {
      while (at < source_.size() && IsSpace(source_[at])) ++at;
    };
    skip_space();
    if (source_.substr(at, name.size()) != name) return std::nullopt;
    at += name.size();
    skip_space();
    if (source_.substr(at, 1) == "-" || source_.substr(at, 1) == "+") ++at;
    if (source_.substr(at, 2) != "%}") return std::nullopt;
    return at;
  }

  absl::Status LexRaw(size_t tag_end) {
    at_ = tag_end;
    EndTag(source_[tag_end - 1] == '-', false);
    for (size_t tag = source_.find("{%", at_); tag != source_.npos;
         tag = source_.find("{%", tag + 2)) {
      const std::string_view sign = source_.substr(tag + 2, 1);
      const size_t name = tag + 2 + (sign == "-" || sign == "+" ? 1 : 0);
      const std::optional<size_t> end = NamedTagEnd(name, "endraw");
      if (!end) continue;
      AddDataBefore(tag, true);
      at_ = *end;
      EndTag(source_[*end - 1] == '-', source_[*end - 1] != '+');
      return absl::OkStatus();
    }
    return ErrorAt(line_, "block 'raw' has no 'endraw'");
  }

  absl::Status LexTag(TokenKind begin, TokenKind end, char closing) {
    Add(begin);
    const int first_line = line_;
    size_t brackets = 0;
    while (at_ < source_.size()) {
      const char c = Peek();
      if (IsSpace(c)) {
        line_ += c == '\n';
        ++at_;
        continue;
      }
      const size_t sign = (c == '-' || (c == '+' && closing == '%')) ? 1 : 0;
      if (brackets == 0 && Peek(sign) == closing && Peek(sign + 1) == '}') {
        Add(end);
        at_ += sign;
        EndTag(c == '-', closing == '%' && c != '+');
        return absl::OkStatus();
      }
      SETU_RETURN_IF_ERROR(LexToken(brackets));
    }
    return ErrorAt(first_line, "tag has no end");
  }

  absl::Status LexToken(size_t& brackets) {
    const char c = Peek();
    if (c == '\'' || c == '"') return LexString(c);
    if (IsDigit(c)) return LexNumber();
    if (IsNameStart(c)) {
      const size_t begin = at_;
      while (IsName(Peek())) ++at_;
      Add(TokenKind::kName);
      tokens_.back().text = source_.substr(begin, at_ - begin);
      return absl::OkStatus();
    }
    for (std::string_view op :
         {"//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<",
          ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ",", ":", ".", "|"}) {
      if (source_.substr(at_, op.size()) != op) continue;
      Add(TokenKind::kOperator);
      tokens_.back().text = op;
      at_ += op.size();
      if (op == "(" || op == "[" || op == "{") ++brackets;
      if ((op == ")" || op == "]" || op == "}") && brackets > 0) --brackets;
      return absl::OkStatus();
    }
    return ErrorAt(
        line_, absl::StrCat("unexpected character '",
                            std::string(source_.substr(at_, CharacterBytes(source_, at_))), "'"));
  }

  absl::Status LexString(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return ErrorAt(line_, "string has no end");
    const std::string_view body = source_.substr(at_ + 1, end - at_ - 1);
    absl::StatusOr<std::string> text = Unescape(body);
    if (!text.ok()) return ErrorAt(line_, std::string(text.status().message()));
    Add(TokenKind::kString);
    tokens_.back().text = *std::move(text);
    line_ += static_cast<int>(std::count(body.begin(), body.end(), '\n'));
    at_ = end + 1;
    return absl::OkStatus();
  }

  absl::Status LexNumber() {
    std::string digits;
    const auto take_digits = [&] {
      for (; IsDigit(Peek()) || Peek() == '_'; ++at_) {
        if (Peek() != '_') digits += Peek();
      }
    };
    take_digits();
    const bool fraction = Peek() == '.' && IsDigit(Peek(1));
    if (fraction) {
      digits += '.';
      ++at_;
      take_digits();
    }
    const size_t sign = Peek(1) == '-' || Peek(1) == '+' ? 1 : 0;
    const bool exponent = (Peek() == 'e' || Peek() == 'E') && IsDigit(Peek(1 + sign));
    if (exponent) {
      digits += 'e';
      if (Peek(1) == '-') digits += '-';
      at_ += 1 + sign;
      take_digits();
    }
    const bool real = fraction || exponent;
    Add(real ? TokenKind::kFloat : TokenKind::kInteger);
    const char* end = digits.data() + digits.size();
    const auto error = real ? std::from_chars(digits.data(), end, tokens_.back().real).ec
                            : std::from_chars(digits.data(), end, tokens_.back().integer).ec;
    if (error != std::errc()) return ErrorAt(line_, absl::StrCat("number ", digits, " is too big"));
    return absl::OkStatus();
  }

  const std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // the tag before at_ ended a line
  std::vector<Token> tokens_;
};

}  // namespace

absl::StatusOr<std::vector<Token>> Lex(std::string_view source) {
  const std::string text = NormalizeLines(source);
  return Lexer(text).Run();
}

absl::Status ErrorAt(int line, std::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat(kLinePrefix, line, ": ", std::string(Utf8Start(message, kMaxMessageBytes))));
}

absl::Status AtLine(int line, const absl::Status& error) {
  const std::string message(error.message());
  return message.starts_with(kLinePrefix) ? error : ErrorAt(line, message);
}

}  // namespace setu::chat
