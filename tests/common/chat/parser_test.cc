// SPDX-License-Identifier: Apache-2.0
#include "common/chat/parser.h"

#include <gtest/gtest.h>

#include "tests/common/chat/render.h"

namespace setu::chat {
namespace {

TEST(Parser, StatementsMustBeWhole) {
  for (const char* source :
       {"{% if 1 %}", "{% if 1 %}{% else %}{% elif 1 %}{% endif %}", "{% for x in y %}{% endif %}",
        "{% endif %}", "{% for in y %}{% endfor %}", "{% for x y %}{% endfor %}", "{% set %}",
        "{% set 1 = 2 %}", "{% set x = %}", "{% set a, b %}{% endset %}", "{% macro %}",
        "{% macro m(1) %}{% endmacro %}", "{% macro m(a %}{% endmacro %}", "{% break %}",
        "{% for x in y %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
        "{% if 1 %}{% endfor %}", "{% call m() %}{% endcall %}", "{% extends 'x' %}"}) {
    EXPECT_EQ(ParseTemplate(source, 64).status().code(), absl::StatusCode::kInvalidArgument)
        << source;
  }
}

TEST(Parser, DepthIsThatOfTheSource) {
  EXPECT_TRUE(ParseTemplate("{% if 1 %}{% if 1 %}x{% endif %}{% endif %}", 4).ok());
  EXPECT_FALSE(ParseTemplate("{% if 1 %}{% if 1 %}x{% endif %}{% endif %}", 2).ok());
  EXPECT_FALSE(ParseTemplate("{{ ((((1)))) }}", 4).ok());
}

TEST(Parser, AGenerationBlockOnlyGroups) {
  EXPECT_EQ(Render("a{% generation %}b{% endgeneration %}c"), "abc");
}

}  // namespace
}  // namespace setu::chat
