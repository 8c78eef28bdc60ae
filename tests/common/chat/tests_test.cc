// SPDX-License-Identifier: Apache-2.0
#include "common/chat/tests.h"

#include <gtest/gtest.h>

#include "tests/common/chat/render.h"

namespace setu::chat {
namespace {

TEST(Tests, UndefinedIsNotNone) {
  EXPECT_EQ(Render("{{ x is defined }}{{ x is none }}{{ none is defined }}{{ none is none }}"),
            "FalseFalseTrueTrue");
}

TEST(Tests, WrongUseIsAnErrorThatNamesTheTest) {
  EXPECT_NE(Error("{{ 1 is nope }}").find("test 'nope'"), std::string::npos);
  EXPECT_NE(Error("{{ 1 is eq }}").find("test 'eq'"), std::string::npos);
  EXPECT_FALSE(Error("{{ 1 is divisibleby(0) }}").empty());
  EXPECT_FALSE(Error("{{ 'a' is odd }}").empty());
}

}  // namespace
}  // namespace setu::chat
