// SPDX-License-Identifier: Apache-2.0
#include "common/chat/lexer.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/common/chat/render.h"

namespace setu::chat {
namespace {

TEST(Lexer, TokensKnowTheirLine) {
  const auto tokens = Lex("a\n{{ 'x\ny' }}\n{# \n #}{%- if\n b %}{{ 12 }}");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  for (const Token& token : *tokens) {
    if (token.text == "if") {
      EXPECT_EQ(token.line, 5);
    }
    if (token.text == "b") {
      EXPECT_EQ(token.line, 6);
    }
    if (token.kind == TokenKind::kInteger) {
      EXPECT_EQ(token.integer, 12);
      EXPECT_EQ(token.line, 6);
    }
  }
  EXPECT_EQ(tokens->back().kind, TokenKind::kEnd);
}

TEST(Lexer, NumbersHaveTheirType) {
  const auto tokens = Lex("{{ 1_000 2.5 1e3 1.5e-2 7.x }}");
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ((*tokens)[1].integer, 1000);
  EXPECT_EQ((*tokens)[2].real, 2.5);
  EXPECT_EQ((*tokens)[3].real, 1000.0);
  EXPECT_EQ((*tokens)[4].real, 0.015);
  EXPECT_EQ((*tokens)[5].kind, TokenKind::kInteger);
  EXPECT_FALSE(Lex("{{ 99999999999999999999 }}").ok());
}

TEST(Lexer, WhiteSpaceBesideTagsGoesOrStays) {
  EXPECT_EQ(Render("  {% if 1 %}\n  a\n  {% endif %}\nb\n"), "  a\nb");
  EXPECT_EQ(Render("  {%+ if 1 +%}\n  a\n  {%- endif %}\n\nb"), "  \n  a\nb");
  EXPECT_EQ(Render("x  {{- 1 -}}  y  {{ 2 }}  z"), "x1y  2  z");
  EXPECT_EQ(Render("a  {#- c -#}  b {# c #}\nd"), "ab d");
}

TEST(Lexer, WhatHasNoEndIsAnError) {
  for (const char* source :
       {"{{ 1", "{% if", "{# c", "{{ 'a", "{% raw %} x", "{{ ` }}", "{{ \xFF }}"}) {
    EXPECT_NE(Error(source).find("line 1"), std::string::npos) << source;
  }
}

}  // namespace
}  // namespace setu::chat
