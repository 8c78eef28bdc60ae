// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace setu::tokenizer {
namespace {

std::vector<std::string> Split(const std::vector<std::string_view>& patterns,
                               std::string_view text) {
  auto words = PreTokenizer::Compile(patterns);
  EXPECT_TRUE(words.ok()) << words.status();
  std::vector<std::string> split;
  const absl::Status status = words->Split(text, [&](std::string_view word) {
    split.emplace_back(word);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return split;
}

using Words = std::vector<std::string>;

TEST(PreTokenizer, MatchesAndGapsStandAlone) {
  EXPECT_EQ(Split({"[0-9]+"}, "ab12cd3"), (Words{"ab", "12", "cd", "3"}));
  EXPECT_EQ(Split({"[0-9]+"}, "none"), (Words{"none"}));
  EXPECT_EQ(Split({"[0-9]+"}, ""), (Words{}));
}

TEST(PreTokenizer, LaterPatternsSeeOnlyTheirPiece) {
  // "b" ends its piece, so the look-ahead that forbids a following digit holds.
  EXPECT_EQ(Split({"[0-9]", "[a-z]+(?![0-9])"}, "ab1"), (Words{"ab", "1"}));
}

TEST(PreTokenizer, WhiteSpaceIsUnicodes) {
  EXPECT_EQ(Split({R"(\s+)"}, "a\u00a0\u2003\u0085 b"), (Words{"a", "\u00a0\u2003\u0085 ", "b"}));
  EXPECT_EQ(Split({R"(\s+)"}, "a\u180eb"), (Words{"a\u180eb"}));
}

TEST(PreTokenizer, AnErrorOfTheReceiverStopsIt) {
  auto words = PreTokenizer::Compile(std::vector<std::string_view>{"[a-z]"});
  ASSERT_TRUE(words.ok());
  int calls = 0;
  const absl::Status status = words->Split("abc", [&](std::string_view) {
    return ++calls == 2 ? absl::InternalError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(status.message(), "enough");
  EXPECT_EQ(calls, 2);
}

TEST(PreTokenizer, APatternThatBacktracksWithoutEndIsStopped) {
  auto words = PreTokenizer::Compile(std::vector<std::string_view>{"(a+)+$"});
  ASSERT_TRUE(words.ok());
  const absl::Status status =
      words->Split(std::string(64, 'a') + "b", [](std::string_view) { return absl::OkStatus(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(PreTokenizer, AWrongPatternIsNamed) {
  const auto words = PreTokenizer::Compile(std::vector<std::string_view>{"(["});
  EXPECT_EQ(words.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(words.status().message().find("(["), std::string::npos);
}

}  // namespace
}  // namespace setu::tokenizer
