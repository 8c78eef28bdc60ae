// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf_cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/model/gguf_writer.h"

namespace setu::model {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(GgufCursor, TakesOneValueAfterAnother) {
  const std::string bytes = RawBytes(uint32_t{7}) + RawString("name") + RawBytes(uint16_t{9});
  GgufCursor cursor(Bytes(bytes));
  EXPECT_EQ(cursor.Next<uint32_t>("count").value(), 7u);
  EXPECT_EQ(cursor.NextString("name", 4).value(), "name");
  EXPECT_EQ(cursor.Next<uint16_t>("last").value(), 9u);
  EXPECT_EQ(cursor.remaining(), 0u);
  EXPECT_THAT(cursor.Next<uint8_t>("more").status().message(), HasSubstr("more: the file ends"));
}

TEST(GgufCursor, LengthsAreCheckedBeforeTheCopy) {
  const std::string bytes = RawBytes(uint64_t{1} << 60) + "abc";
  EXPECT_THAT(GgufCursor(Bytes(bytes)).NextString("s", 100).status().message(),
              HasSubstr("over the limit 100"));
  EXPECT_THAT(GgufCursor(Bytes(bytes)).NextString("s", ~uint64_t{0}).status().message(),
              HasSubstr("over the 3 bytes"));
}

TEST(GgufCursor, CountsAreBackedByBytes) {
  const std::string bytes(80, 'x');
  const GgufCursor cursor(Bytes(bytes));
  EXPECT_TRUE(cursor.CheckCount("n", 10, 8, 10).ok());
  EXPECT_FALSE(cursor.CheckCount("n", 11, 8, 100).ok());
  EXPECT_FALSE(cursor.CheckCount("n", 10, 8, 9).ok());
  EXPECT_FALSE(cursor.CheckCount("n", ~uint64_t{0}, 8, ~uint64_t{0}).ok());
}

TEST(GgufCursor, NamesInErrorsAreSafeToShow) {
  EXPECT_EQ(Quoted("a\n\x1b\xff"), "'a\\n\\x1b\\xff'");
  EXPECT_EQ(Quoted(std::string(100, 'n')), "'" + std::string(64, 'n') + "...'");
}

}  // namespace
}  // namespace setu::model
