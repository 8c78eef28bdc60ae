// SPDX-License-Identifier: Apache-2.0
#include "common/chat/expression_parser.h"

#include <gtest/gtest.h>

#include "tests/common/chat/render.h"

namespace setu::chat {
namespace {

TEST(ExpressionParser, BindsAsJinjaDoes) {
  EXPECT_EQ(Render("{{ 1 + 2 * 3 }}{{ (1 + 2) * 3 }}"), "79");
  EXPECT_EQ(Render("{{ 'a' ~ 1 + 2 if false else 'b' ~ 'c'|upper }}"), "bC");
  EXPECT_EQ(Render("{{ not 1 == 2 and 3 in [3] }}"), "True");
  EXPECT_EQ(Render("{{ -2 ** 2 }}{{ -3|abs }}{{ 2 ** 3 ** 2 }}"), "4364");
  EXPECT_EQ(Render("{{ 1 is defined and x is not defined }}"), "True");
  EXPECT_EQ(Render("{{ 4 is divisibleby 2 and 5 is divisibleby(5) }}"), "True");
}

TEST(ExpressionParser, WhatIsNoExpressionIsAnError) {
  for (const char* inside :
       {"",     "1 +",      "(1",         "[1",     "{1: 2}",    "{'a'}", "x.",
        "x[",   "x[]",      "x[1:2:3:4]", "x[1 2]", "f(a=1, 2)", "f(1",   "x|",
        "x is", "x is not", "a if",       "1 1",    "not",       "* 2",   "x|1"}) {
    EXPECT_FALSE(Error("{{ " + std::string(inside) + " }}").empty()) << inside;
  }
}

}  // namespace
}  // namespace setu::chat
