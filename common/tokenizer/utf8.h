// SPDX-License-Identifier: Apache-2.0
// UTF-8 that arrives in parts and may be broken: whole characters come out, broken bytes become
// U+FFFD as the Unicode standard recommends (one for every maximal subpart, section 3.9).
#ifndef SETU_COMMON_TOKENIZER_UTF8_H_
#define SETU_COMMON_TOKENIZER_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace setu::tokenizer {

enum class Utf8Kind {
  kCharacter,   // `bytes` are one character
  kInvalid,     // `bytes` are a maximal subpart: one U+FFFD stands for them
  kUnfinished,  // the text ends inside a character; `bytes` are all that is left
};

struct Utf8Step {
  Utf8Kind kind = Utf8Kind::kInvalid;
  size_t bytes = 0;  // 1 to 4
};

// What the text starts with; it must not be empty.
Utf8Step ReadUtf8(std::string_view text);

// Moves what is whole from `held` to `out`, U+FFFD for every maximal invalid subpart; an unfinished
// character (at most 3 bytes) stays.
void TakeWholeUtf8(std::string& held, std::string& out);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace setu::tokenizer

#endif  // SETU_COMMON_TOKENIZER_UTF8_H_
