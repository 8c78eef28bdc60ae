// SPDX-License-Identifier: Apache-2.0
#include "common/chat/string_literal.h"

#include <gtest/gtest.h>

namespace setu::chat {
namespace {

TEST(StringLiteral, EscapesAsInPython) {
  EXPECT_EQ(*Unescape(R"(a\n\t\r\\\'\"b)"), "a\n\t\r\\'\"b");
  EXPECT_EQ(*Unescape(R"(\x41\u00e9\U0001f642\101\7)"), "Aé🙂A\a");
  EXPECT_EQ(*Unescape(R"(\d\ \()"), R"(\d\ \()");
  EXPECT_EQ(*Unescape("a\\\nb"), "ab");
  EXPECT_EQ(*Unescape("a\\"), "a\\");
}

TEST(StringLiteral, WrongEscapesAreErrors) {
  for (const char* literal : {R"(\x4)", R"(\xg0)", R"(\u12)", R"(\ud83d)", R"(\U00110000)"}) {
    EXPECT_EQ(Unescape(literal).status().code(), absl::StatusCode::kInvalidArgument) << literal;
  }
}

}  // namespace
}  // namespace setu::chat
