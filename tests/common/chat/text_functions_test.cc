// SPDX-License-Identifier: Apache-2.0
#include "common/chat/text_functions.h"

#include <gtest/gtest.h>

namespace setu::chat {
namespace {

TEST(TextFunctions, ChangeTheCaseOfAsciiLetters) {
  const Text text("it's a-b éX Ü", false);
  EXPECT_EQ(Upper(text).view(), "IT'S A-B éX Ü");
  EXPECT_EQ(Lower(text).view(), "it's a-b éx Ü");
  EXPECT_EQ(Title(text).view(), "It'S A-B éx Ü");
  EXPECT_EQ(TitleWords(text).view(), "It's A-B éx Ü");
  EXPECT_EQ(Capitalize(text).view(), "It's a-b éx Ü");
}

TEST(TextFunctions, ReplaceKeepsBothOrigins) {
  Meter meter({});
  const auto text = Replace(Text("a-b-c", true), "-", Text("+", false), 1, meter);
  ASSERT_TRUE(text.ok());
  ASSERT_EQ(text->Pieces().size(), 3u);
  EXPECT_EQ(text->view(), "a+b-c");
  EXPECT_TRUE(text->Pieces()[0].from_user);
  EXPECT_FALSE(text->Pieces()[1].from_user);
}

TEST(TextFunctions, ReplacingNothingStandsBetweenCharacters) {
  Meter meter({});
  EXPECT_EQ(Replace(Text("aé", false), "", Text("-", false), -1, meter)->view(), "-a-é-");
  EXPECT_EQ(Replace(Text("", false), "", Text("-", false), -1, meter)->view(), "-");
  EXPECT_EQ(Replace(Text("ab", false), "", Text("-", false), 2, meter)->view(), "-a-b");
}

}  // namespace
}  // namespace setu::chat
