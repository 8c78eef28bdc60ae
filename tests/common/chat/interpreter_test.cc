// SPDX-License-Identifier: Apache-2.0
#include "common/chat/interpreter.h"

#include <gtest/gtest.h>

#include "tests/common/chat/render.h"

namespace setu::chat {
namespace {

TEST(Interpreter, LoopsHaveTheirOwnVariables) {
  EXPECT_EQ(
      Render("{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}"),
      "231");
  EXPECT_EQ(Render("{% if 1 %}{% set x = 1 %}{% endif %}{{ x }}"), "1");
}

TEST(Interpreter, MacrosSeeOnlyTheirOwnAndTheOutermost) {
  EXPECT_EQ(Render("{% set g = 'g' %}{% macro m() %}{{ g }}{{ x is defined }}{% endmacro %}"
                   "{% for x in [1] %}{{ m() }}{% endfor %}"),
            "gFalse");
}

TEST(Interpreter, BreakAndContinueReachTheirLoop) {
  EXPECT_EQ(
      Render("{% for i in range(9) %}{% for j in range(9) %}{% if j == 1 %}{% break %}"
             "{% endif %}{{ j }}{% endfor %}{% if i == 2 %}{% break %}{% endif %}{% endfor %}"),
      "000");
}

TEST(Interpreter, UnpackingMustFit) {
  EXPECT_NE(Error("{% for a, b in [[1]] %}{% endfor %}").find("unpacks 1 values into 2"),
            std::string::npos);
}

TEST(Interpreter, OnlyNamespacesChange) {
  EXPECT_NE(Error("{% set x = {} %}{% set x.y = 1 %}").find("'x' is no namespace"),
            std::string::npos);
}

}  // namespace
}  // namespace setu::chat
