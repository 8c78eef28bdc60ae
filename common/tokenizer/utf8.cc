// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/utf8.h"

#include <cstdint>

#include "common/base/utf8.h"

namespace setu::tokenizer {
Utf8Step ReadUtf8(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  const size_t length = Utf8Length(lead);
  if (length == 0) return {Utf8Kind::kInvalid, 1};
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Utf8Kind::kUnfinished, i};
    const auto byte = static_cast<uint8_t>(text[i]);
    if (i == 1 ? !Utf8Follows(lead, byte) : (byte & 0xC0) != 0x80) return {Utf8Kind::kInvalid, i};
  }
  return {Utf8Kind::kCharacter, length};
}

void TakeWholeUtf8(std::string& held, std::string& out) {
  size_t at = 0;
  while (at < held.size()) {
    const Utf8Step step = ReadUtf8(std::string_view(held).substr(at));
    if (step.kind == Utf8Kind::kUnfinished) break;
    if (step.kind == Utf8Kind::kCharacter) {
      out.append(held, at, step.bytes);
    } else {
      out += kReplacementCharacter;
    }
    at += step.bytes;
  }
  held.erase(0, at);
}

}  // namespace setu::tokenizer
