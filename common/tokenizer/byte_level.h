// SPDX-License-Identifier: Apache-2.0
// GPT-2's alphabet: each of the 256 bytes is written as one printable character, so that token
// texts hold no spaces or control bytes. A space is "Ġ", for example.
// Source: bytes_to_unicode in https://github.com/openai/gpt-2/blob/master/src/encoder.py
#ifndef SETU_COMMON_TOKENIZER_BYTE_LEVEL_H_
#define SETU_COMMON_TOKENIZER_BYTE_LEVEL_H_

#include <optional>
#include <string>
#include <string_view>

namespace setu::tokenizer {

// The bytes that a text of this alphabet stands for; none where a character is outside it.
std::optional<std::string> BytesOfByteLevel(std::string_view text);

}  // namespace setu::tokenizer

#endif  // SETU_COMMON_TOKENIZER_BYTE_LEVEL_H_
