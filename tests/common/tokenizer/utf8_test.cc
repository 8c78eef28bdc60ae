// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace setu::tokenizer {
namespace {

std::string Whole(std::string bytes) {
  std::string text;
  TakeWholeUtf8(bytes, text);
  return text + "|" + bytes;
}

TEST(Utf8, WholeCharactersComeOut) { EXPECT_EQ(Whole("aé日🙂"), "aé日🙂|"); }

TEST(Utf8, AnUnfinishedCharacterStays) {
  EXPECT_EQ(Whole("a\xC3"), "a|\xC3");
  EXPECT_EQ(Whole("\xE6\x97"), "|\xE6\x97");
  EXPECT_EQ(Whole("\xF0\x9F\x99"), "|\xF0\x9F\x99");
}

// The Unicode standard's table 3-8 and the text around it.
TEST(Utf8, EveryMaximalSubpartIsOneReplacement) {
  EXPECT_EQ(Whole("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd|");
  EXPECT_EQ(Whole("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),  // overlong forms
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA|");
  EXPECT_EQ(Whole("\xED\xA0\x80\x41"), "\uFFFD\uFFFD\uFFFDA|");            // a surrogate
  EXPECT_EQ(Whole("\xF4\x90\x80\x80\x41"), "\uFFFD\uFFFD\uFFFD\uFFFDA|");  // above U+10FFFF
  EXPECT_EQ(Whole("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB|");
}

}  // namespace
}  // namespace setu::tokenizer
