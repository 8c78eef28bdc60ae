// SPDX-License-Identifier: Apache-2.0
// Ordinary text to ids: what is left once control and user-defined tokens are taken out.
#ifndef SETU_COMMON_TOKENIZER_TEXT_ENCODER_H_
#define SETU_COMMON_TOKENIZER_TEXT_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/tokenizer/tokenizer.h"

namespace setu::tokenizer {

class TextEncoder {
 public:
  virtual ~TextEncoder() = default;

  // Appends the ids of `text`: valid UTF-8, less than 2^31 bytes, not empty. `offset` is where it
  // stands in the caller's text, for the error about a byte that has no token.
  virtual absl::Status Encode(std::string_view text, size_t offset,
                              std::vector<TokenId>& ids) const = 0;
};

inline absl::Status NoTokenForByte(char byte, size_t offset) {
  return absl::InvalidArgumentError(
      absl::StrCat("byte 0x", absl::Hex(static_cast<uint8_t>(byte), absl::kZeroPad2), " at offset ",
                   offset, " of the text has no token in the model's vocabulary"));
}

}  // namespace setu::tokenizer

#endif  // SETU_COMMON_TOKENIZER_TEXT_ENCODER_H_
