// SPDX-License-Identifier: Apache-2.0
// Well-formed UTF-8, after table 3-7 of the Unicode standard: no overlong forms, no surrogates,
// nothing above U+10FFFF.
//
//   if (size_t ok = ValidUtf8Prefix(text); ok != text.size()) return BadByte(ok);
#ifndef SETU_COMMON_BASE_UTF8_H_
#define SETU_COMMON_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace setu {

// Bytes of the character that begins with `lead`; 0 where none does.
inline size_t Utf8Length(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;
}

// Whether `second` may follow `lead`, the first byte of a longer character.
inline bool Utf8Follows(uint8_t lead, uint8_t second) {
  const uint8_t lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return second >= lowest && second <= highest;
}

// How many bytes from the start are whole, well-formed characters.
inline size_t ValidUtf8Prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<uint8_t>(text[at]);
    const size_t length = Utf8Length(lead);
    if (length == 0 || length > text.size() - at) return at;
    for (size_t i = 1; i < length; ++i) {
      const auto byte = static_cast<uint8_t>(text[at + i]);
      if (i == 1 ? !Utf8Follows(lead, byte) : (byte & 0xC0) != 0x80) return at;
    }
    at += length;
  }
  return at;
}

// The longest start of at most `bytes` bytes that is whole, well-formed characters: what of a text
// may stand in a message.
inline std::string_view Utf8Start(std::string_view text, size_t bytes) {
  return text.substr(0, ValidUtf8Prefix(text.substr(0, bytes)));
}

}  // namespace setu

#endif  // SETU_COMMON_BASE_UTF8_H_
