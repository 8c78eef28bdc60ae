// SPDX-License-Identifier: Apache-2.0
#include "common/chat/value.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace setu::chat {
namespace {

class ValueTest : public ::testing::Test {
 protected:
  static Value Word(const char* text) { return std::make_shared<const Text>(text, false); }
  Value Items(std::vector<Value> items) { return *NewList(std::move(items), meter_); }

  Meter meter_{Limits{}};
};

TEST_F(ValueTest, TruthIsPythons) {
  for (const Value& value : {Value(Undefined{}), Value(None{}), Value(false), Value(int64_t{0}),
                             Value(0.0), Word(""), Items({})}) {
    EXPECT_FALSE(IsTrue(value)) << TypeName(value);
  }
  for (const Value& value : {Value(true), Value(int64_t{-1}), Value(0.5), Word(" "),
                             Items({Value(None{})}), Value(Function::kRange)}) {
    EXPECT_TRUE(IsTrue(value)) << TypeName(value);
  }
}

TEST_F(ValueTest, NumbersOfAllKindsAreEqual) {
  EXPECT_TRUE(*Equal(Value(true), Value(1.0), meter_));
  EXPECT_TRUE(*Equal(Value(int64_t{1}), Value(true), meter_));
  EXPECT_FALSE(*Equal(Value(int64_t{1}), Word("1"), meter_));
  EXPECT_FALSE(*Equal(Value(None{}), Value(false), meter_));
  EXPECT_TRUE(*Equal(Items({Word("a")}), Items({Word("a")}), meter_));
  EXPECT_EQ(*Compare(Value(int64_t{1}), Value(1.5), meter_), -1);
  EXPECT_FALSE(Compare(Value(int64_t{1}), Word("a"), meter_).ok());
}

TEST_F(ValueTest, TheLastOfEqualKeysCounts) {
  const auto key = std::make_shared<const Text>("k", false);
  const Value dict = *NewDict({{key, Word("a")}, {key, Word("b")}}, meter_);
  ASSERT_EQ(As<Dict>(dict)->items.size(), 1u);
  EXPECT_TRUE(*Equal(*As<Dict>(dict)->Find("k"), Word("b"), meter_));
  EXPECT_EQ(As<Dict>(dict)->Find("z"), nullptr);
}

TEST_F(ValueTest, NestingIsCounted) {
  Value value = Items({});
  for (int level = 1; level < 64; ++level) value = Items({value});
  EXPECT_FALSE(NewList({value}, meter_).ok());
}

}  // namespace
}  // namespace setu::chat
