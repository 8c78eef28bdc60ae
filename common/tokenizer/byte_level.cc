// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/byte_level.h"

#include <array>
#include <cstdint>

namespace setu::tokenizer {
namespace {

constexpr bool StandsForItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

// Bytes by code point; the others are U+0100 and up, in order. -1: none.
constexpr std::array<int16_t, 0x144> MakeBytes() {
  std::array<int16_t, 0x144> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[StandsForItself(byte) ? byte : next++] = static_cast<int16_t>(byte);
  }
  return bytes;
}

constexpr std::array<int16_t, 0x144> kBytes = MakeBytes();

}  // namespace

std::optional<std::string> BytesOfByteLevel(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    unsigned point = static_cast<uint8_t>(text[at]);
    if (point >= 0x80) {  // all of the alphabet is below U+0800: two bytes
      if (at + 1 == text.size() || point < 0xC2 || point > 0xDF) return std::nullopt;
      const unsigned tail = static_cast<uint8_t>(text[++at]);
      if ((tail & 0xC0) != 0x80) return std::nullopt;
      point = (point & 0x1F) << 6 | (tail & 0x3F);
    }
    if (point >= kBytes.size() || kBytes[point] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kBytes[point]));
  }
  return bytes;
}

}  // namespace setu::tokenizer
