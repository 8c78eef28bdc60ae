// SPDX-License-Identifier: Apache-2.0
#include "common/chat/filters.h"

#include <gtest/gtest.h>

#include "tests/common/chat/render.h"

namespace setu::chat {
namespace {

TEST(Filters, SelectAndMapTakeFalseForEmpty) {
  EXPECT_EQ(Render("{{ none|selectattr('a')|list }}{{ none|map('upper')|list }}"), "[][]");
}

TEST(Filters, MapAppliesOnlyFiltersThatApplyNoOthers) {
  EXPECT_EQ(Render("{{ ['a']|map('upper')|list }}"), "['A']");
  EXPECT_NE(Error("{{ ['a']|map('map', 'upper')|list }}").find("'map' is not known"),
            std::string::npos);
}

TEST(Filters, WrongUseIsAnErrorThatNamesTheFilter) {
  for (const char* inside :
       {"1|join", "none|length", "1|first", "'a'|replace('b')", "'a'|trim(1)", "'a'|upper(1)",
        "[1]|map", "[1]|selectattr", "[1]|select('nope')", "'a'|abs", "1|items", "range|tojson",
        "'a'|default(1, 2, 3)", "'a'|default(x=1)"}) {
    EXPECT_NE(Error("{{ " + std::string(inside) + " }}").find("filter '"), std::string::npos)
        << inside;
  }
}

}  // namespace
}  // namespace setu::chat
