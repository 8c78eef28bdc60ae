// SPDX-License-Identifier: Apache-2.0
#include "common/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace setu {
namespace {

// The standard's own definition: decode, then ask for the shortest form of a scalar value.
size_t SlowValidPrefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<uint8_t>(text[at]);
    size_t length = 1;
    uint32_t value = lead;
    if (lead >= 0x80) {
      length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
      if (lead < 0xC0 || lead >= 0xF8 || at + length > text.size()) return at;
      value = lead & (0x7F >> length);
      for (size_t i = 1; i < length; ++i) {
        const auto byte = static_cast<uint8_t>(text[at + i]);
        if ((byte & 0xC0) != 0x80) return at;
        value = value << 6 | (byte & 0x3F);
      }
    }
    const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (value < smallest[length] || value > 0x10FFFF) return at;
    if (value >= 0xD800 && value <= 0xDFFF) return at;
    at += length;
  }
  return at;
}

TEST(Utf8, AgreesWithTheDefinitionOnEveryStartOfACharacter) {
  for (uint32_t word = 0; word < (1u << 24); word += 7) {  // 7 is odd: every byte comes up
    const char bytes[] = {static_cast<char>(word >> 16), static_cast<char>(word >> 8),
                          static_cast<char>(word), static_cast<char>(0x80 | (word & 0x3F))};
    const std::string_view text(bytes, 4);
    ASSERT_EQ(ValidUtf8Prefix(text), SlowValidPrefix(text)) << std::hex << word;
  }
}

TEST(Utf8, FourByteCharactersEndAtTheLastOfUnicode) {
  EXPECT_EQ(ValidUtf8Prefix("\xF4\x8F\xBF\xBF"), 4u);
  EXPECT_EQ(ValidUtf8Prefix("\xF4\x90\x80\x80"), 0u);
  EXPECT_EQ(ValidUtf8Prefix("\xF0\x8F\xBF\xBF"), 0u);
  EXPECT_EQ(ValidUtf8Prefix("\xF0\x90\x80\x80"), 4u);
}

TEST(Utf8, StopsBeforeAnUnfinishedCharacter) {
  EXPECT_EQ(ValidUtf8Prefix("caf\xC3"), 3u);
  EXPECT_EQ(ValidUtf8Prefix("caf\xC3\xA9"), 5u);
  EXPECT_EQ(ValidUtf8Prefix(""), 0u);
  EXPECT_EQ(ValidUtf8Prefix(std::string_view("a\0b", 3)), 3u);
}

TEST(Utf8, AStartIsCutBetweenCharacters) {
  EXPECT_EQ(Utf8Start("caf\xC3\xA9!", 4), "caf");
  EXPECT_EQ(Utf8Start("caf\xC3\xA9!", 5), "caf\xC3\xA9");
  EXPECT_EQ(Utf8Start("caf\xC3\xA9!", 100), "caf\xC3\xA9!");
  EXPECT_EQ(Utf8Start("a\xFFz", 3), "a");
  EXPECT_EQ(Utf8Start("", 3), "");
}

}  // namespace
}  // namespace setu
