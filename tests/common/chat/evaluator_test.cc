// SPDX-License-Identifier: Apache-2.0
#include "common/chat/evaluator.h"

#include <gtest/gtest.h>

#include "tests/common/chat/render.h"

namespace setu::chat {
namespace {

TEST(Evaluator, LogicGivesTheValueThatDecides) {
  EXPECT_EQ(Render("{{ '' or 'b' }}{{ 1 and 2 }}{{ 0 and 1 / 0 }}{{ 1 or 1 / 0 }}"), "b201");
}

TEST(Evaluator, OnlyTheChosenBranchIsEvaluated) {
  EXPECT_EQ(Render("{{ 'a' if true else 1 / 0 }}{{ 1 / 0 if false else 'b' }}"), "ab");
}

TEST(Evaluator, FunctionsCheckTheirArguments) {
  for (const char* inside : {"range()", "range(1, 2, 3, 4)", "range('a')", "range(1, 2, 0)",
                             "raise_exception()", "1()", "'a'()"}) {
    EXPECT_FALSE(Error("{{ " + std::string(inside) + " }}").empty()) << inside;
  }
}

TEST(Evaluator, ALoopCanBeKeptAndReadLater) {
  EXPECT_EQ(
      Render("{% set ns = namespace() %}{% for x in 'abc' %}{% if x == 'b' %}"
             "{% set ns.l = loop %}{% endif %}{% endfor %}{{ ns.l.index }}{{ ns.l.nextitem }}"),
      "2c");
}

TEST(Evaluator, TheClockCannotBeRead) {
  EXPECT_EQ(Render("{{ strftime_now is defined }}"), "False");
}

}  // namespace
}  // namespace setu::chat
