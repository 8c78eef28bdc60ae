// SPDX-License-Identifier: Apache-2.0
#include "common/chat/text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace setu::chat {
namespace {

Text Mixed() {
  Text text(" tem", false);
  text.Append(Text("user ", true));
  text.Append(Text("plate ", false));
  return text;
}

std::string Shown(const Text& text) {
  std::string shown;
  for (const Piece& piece : text.Pieces()) {
    shown += piece.from_user ? "<" + piece.text + ">" : piece.text;
  }
  return shown;
}

TEST(Text, PartsKeepTheirOrigin) {
  EXPECT_EQ(Shown(Mixed()), " tem<user >plate ");
  EXPECT_EQ(Shown(Mixed().Part(2, 6)), "em<us>");
  EXPECT_EQ(Shown(Mixed().WithBytes("0123456789abcde")), "0123<45678>9abcde");
  EXPECT_EQ(Shown(Strip(Mixed(), std::nullopt, Side::kBoth)), "tem<user >plate");
  EXPECT_TRUE(Text().Pieces().empty());
}

TEST(Text, StripsWhatPythonStrips) {
  for (const char* space :
       {" ", "\t", "\n", "\v", "\f", "\r", "\x1c", "\x1f", "\u0085", "\u00a0", "\u1680", "\u2000",
        "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"}) {
    const std::string both = std::string(space) + "x" + space;
    EXPECT_EQ(Strip(Text(both, false), std::nullopt, Side::kBoth).view(), "x");
    EXPECT_EQ(Strip(Text(both, false), std::nullopt, Side::kLeft).view(), "x" + std::string(space));
    EXPECT_EQ(Strip(Text(both, false), std::nullopt, Side::kRight).view(),
              std::string(space) + "x");
  }
  for (const char* other :
       {"\u200b", "\u180e", "\ufeff", "\u3001", "\u2010", "\xE2", "\xC2", "é"}) {
    EXPECT_EQ(Strip(Text(other, false), std::nullopt, Side::kBoth).view(), other);
  }
  EXPECT_EQ(Strip(Text("éaxaé", false), "éa", Side::kBoth).view(), "x");
}

TEST(Text, SplitsAsPythonDoes) {
  const auto split = [](const char* text, std::optional<std::string_view> at, int64_t most) {
    std::vector<std::string> parts;
    for (const Text& part : Split(Text(text, false), at, most)) parts.emplace_back(part.view());
    return parts;
  };
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split(" a  b\u3000c ", std::nullopt, -1), (Parts{"a", "b", "c"}));
  EXPECT_EQ(split(" a b  c ", std::nullopt, 1), (Parts{"a", "b  c "}));
  EXPECT_EQ(split("a,b,,c", ",", -1), (Parts{"a", "b", "", "c"}));
  EXPECT_EQ(split("a,b,c", ",", 1), (Parts{"a", "b,c"}));
  EXPECT_EQ(split("", ",", -1), (Parts{""}));
  EXPECT_EQ(split("", std::nullopt, -1), Parts{});
}

TEST(Text, BrokenUtf8IsReadByteByByte) {
  EXPECT_EQ(CharacterOffsets("a\xFFé\xE6"), (std::vector<size_t>{0, 1, 2, 4, 5}));
}

}  // namespace
}  // namespace setu::chat
