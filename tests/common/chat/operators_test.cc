// SPDX-License-Identifier: Apache-2.0
#include "common/chat/operators.h"

#include <gtest/gtest.h>

#include "tests/common/chat/render.h"

namespace setu::chat {
namespace {

TEST(Operators, IntegersRoundDown) {
  EXPECT_EQ(
      Render("{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 // -2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 6 % -3 }}"),
      "3 -4 -4 -2 2 0");
  EXPECT_EQ(Render("{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1 / 4 }}"), "3.0 0.5 0.25");
}

TEST(Operators, OverflowAndZeroAreErrors) {
  for (const char* inside :
       {"9223372036854775807 + 1", "-9223372036854775807 - 2", "9223372036854775807 * 2",
        "-(-9223372036854775807 - 1)", "1 / 0", "1 // 0", "1 % 0", "1.0 / 0", "3 ** 99"}) {
    EXPECT_FALSE(Error("{{ " + std::string(inside) + " }}").empty()) << inside;
  }
}

TEST(Operators, SlicesAreThoseOfPython) {
  EXPECT_EQ(Render("{{ 'abcde'[1:4] }} {{ 'abcde'[::-2] }} {{ 'abcde'[-2:] }} {{ 'abcde'[9:] }}."),
            "bcd eca de .");
  EXPECT_EQ(Render("{{ [1, 2, 3][::-1] }} {{ [1, 2, 3][5:1:-1] }} {{ [1, 2, 3][:-9] }}"),
            "[3, 2, 1] [3] []");
}

TEST(Operators, WhatIsNotThereIsUndefined) {
  EXPECT_EQ(Render("{{ [1][7] is defined }}{{ {}.x is defined }}{{ 'a'[3] is defined }}"),
            "FalseFalseFalse");
  EXPECT_NE(Error("{{ x.y }}").find("'x'"), std::string::npos);
}

}  // namespace
}  // namespace setu::chat
