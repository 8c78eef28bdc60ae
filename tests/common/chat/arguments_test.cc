// SPDX-License-Identifier: Apache-2.0
#include "common/chat/arguments.h"

#include <gtest/gtest.h>

namespace setu::chat {
namespace {

TEST(Arguments, ArePlacedByPositionOrName) {
  const Arguments arguments = {.positional = {Value(int64_t{1})}, .named = {{"b", Value(None{})}}};
  EXPECT_EQ(*arguments.FindInteger(0, "a").value(), 1);
  EXPECT_EQ(arguments.FindInteger(1, "b").value(), std::nullopt);  // none is as good as nothing
  EXPECT_EQ(arguments.Find(1, "c"), nullptr);
  EXPECT_FALSE(arguments.FindText(0, "a").ok());
}

TEST(Arguments, TooManyOrUnknownOnesAreErrors) {
  constexpr std::string_view kNames[] = {"a", "b"};
  EXPECT_TRUE((Arguments{.positional = {None{}, None{}}, .named = {}}).Check(kNames).ok());
  EXPECT_FALSE((Arguments{.positional = {None{}, None{}, None{}}, .named = {}}).Check(kNames).ok());
  EXPECT_FALSE((Arguments{.positional = {}, .named = {{"c", None{}}}}).Check(kNames).ok());
}

}  // namespace
}  // namespace setu::chat
