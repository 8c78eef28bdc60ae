// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/byte_level.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

namespace setu::tokenizer {
namespace {

std::string Utf8(unsigned point) {
  if (point < 0x80) return std::string(1, static_cast<char>(point));
  return {static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 0x3F))};
}

TEST(ByteLevel, TheAlphabetHasEveryByteOnce) {
  std::set<std::string> bytes;
  int characters = 0;
  for (unsigned point = 0; point < 0x800; ++point) {
    if (const auto decoded = BytesOfByteLevel(Utf8(point))) {
      ++characters;
      bytes.insert(*decoded);
    }
  }
  EXPECT_EQ(characters, 256);
  EXPECT_EQ(bytes.size(), 256u);
}

TEST(ByteLevel, KnownTexts) {
  EXPECT_EQ(BytesOfByteLevel("Ġthe"), " the");
  EXPECT_EQ(BytesOfByteLevel("Ċ"), "\n");
  EXPECT_EQ(BytesOfByteLevel("æĹ¥"), "日");
  EXPECT_EQ(BytesOfByteLevel("Ń"), "\xAD");
  EXPECT_EQ(BytesOfByteLevel(""), "");
}

TEST(ByteLevel, OtherTextIsNone) {
  EXPECT_EQ(BytesOfByteLevel("a b"), std::nullopt);
  EXPECT_EQ(BytesOfByteLevel("日"), std::nullopt);
  EXPECT_EQ(BytesOfByteLevel("a\xC4"), std::nullopt);
  EXPECT_EQ(BytesOfByteLevel("\x80"), std::nullopt);
}

}  // namespace
}  // namespace setu::tokenizer
