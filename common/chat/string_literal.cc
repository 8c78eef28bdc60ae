// SPDX-License-Identifier: Apache-2.0
#include "common/chat/string_literal.h"

#include <charconv>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace setu::chat {
namespace {

// False where there is no such character.
bool AppendCodePoint(uint32_t point, std::string& out) {
  if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return false;
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (point >> shift & 0x3F)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xC0 | point >> 6);
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xE0 | point >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0 | point >> 18);
    tail(12), tail(6), tail(0);
  }
  return true;
}

char SimpleEscape(char c) {
  constexpr std::string_view kNames = "\\'\"abfnrtv";
  constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
  const size_t at = kNames.find(c);
  return at == kNames.npos ? '\0' : kValues[at];
}

size_t HexDigits(char c) { return c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0; }

// The digits of base 8 or 16 that `text` starts with, `most` at most.
size_t CountDigits(std::string_view text, size_t most, int base) {
  size_t count = 0;
  while (count < most && count < text.size()) {
    const char c = text[count];
    const bool octal = c >= '0' && c <= '7';
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (base == 8 ? !octal : !hex) break;
    ++count;
  }
  return count;
}

}  // namespace

absl::StatusOr<std::string> Unescape(std::string_view literal) {
  std::string out;
  for (size_t at = 0; at < literal.size(); ++at) {
    if (literal[at] != '\\' || at + 1 == literal.size()) {
      out += literal[at];
      continue;
    }
    const char name = literal[++at];
    if (name == '\n') continue;  // the line goes on
    if (const char simple = SimpleEscape(name); simple != '\0') {
      out += simple;
      continue;
    }
    const size_t hex = HexDigits(name);
    const int base = hex > 0 ? 16 : 8;
    const std::string_view rest = literal.substr(hex > 0 ? at + 1 : at);
    const size_t digits = CountDigits(rest, hex > 0 ? hex : 3, base);
    if (digits == 0 && hex == 0) {
      out += '\\';
      out += name;
      continue;
    }
    uint32_t point = 0;
    std::from_chars(rest.data(), rest.data() + digits, point, base);
    if ((hex > 0 && digits < hex) || !AppendCodePoint(point, out)) {
      return absl::InvalidArgumentError(absl::StrCat("string has a wrong escape '\\",
                                                     std::string(1, name),
                                                     std::string(rest.substr(0, digits)), "'"));
    }
    at += hex > 0 ? digits : digits - 1;
  }
  return out;
}

}  // namespace setu::chat
