// SPDX-License-Identifier: Apache-2.0
#include "common/config/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace setu::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Value, TextIsTakenAsItIs) {
  std::string target = "default";
  const Value value = TextValue(&target);
  EXPECT_EQ(value.get(), "default");
  EXPECT_TRUE(value.set(" a=b,c ").ok());
  EXPECT_EQ(target, " a=b,c ");
}

TEST(Value, ListsAreSplitAtCommas) {
  std::vector<std::string> target = {"x"};
  const Value value = ListValue(&target);
  EXPECT_TRUE(value.set("a:1, b:2").ok());
  EXPECT_THAT(target, ElementsAre("a:1", "b:2"));
  EXPECT_EQ(value.get(), "a:1,b:2");
  EXPECT_FALSE(value.set("a,,b").ok());
  EXPECT_THAT(target, ElementsAre("a:1", "b:2"));
  EXPECT_TRUE(value.set("").ok());
  EXPECT_THAT(target, IsEmpty());
}

TEST(Value, RepeatedTextsAreTakenAsTheyAre) {
  std::vector<std::string> target;
  const Value value = RepeatedValue(&target);
  for (const char* text : {" a,b ", "", "\n"}) EXPECT_TRUE(value.set(text).ok());
  EXPECT_THAT(target, ElementsAre(" a,b ", "", "\n"));
  value.clear();
  EXPECT_THAT(target, IsEmpty());
}

TEST(Value, AnOptionalTextMayBeGivenEmpty) {
  std::optional<std::string> target;
  const Value value = TextValue(&target);
  EXPECT_EQ(value.get(), "");
  EXPECT_TRUE(value.set("").ok());
  EXPECT_EQ(target, "");
}

TEST(Value, SwitchesAreTrueOrFalse) {
  bool target = false;
  const Value value = SwitchValue(&target);
  EXPECT_TRUE(value.set("true").ok());
  EXPECT_TRUE(target);
  EXPECT_FALSE(value.set("yes").ok());
  EXPECT_TRUE(value.set("false").ok());
  EXPECT_FALSE(target);
}

TEST(Value, WholeNumbersAreReadWholeAndInRange) {
  int32_t small = 7;
  const Value value = NumberValue(&small);
  for (const char* bad : {"", "1.5", "1x", "0x10", "2147483648", "-2147483649", "nan"}) {
    EXPECT_FALSE(value.set(bad).ok()) << bad;
  }
  EXPECT_EQ(small, 7);
  EXPECT_TRUE(value.set("-12").ok());
  EXPECT_EQ(small, -12);
  int64_t large = 0;
  EXPECT_TRUE(NumberValue(&large).set("9223372036854775807").ok());
  EXPECT_EQ(large, std::numeric_limits<int64_t>::max());
  EXPECT_FALSE(NumberValue(&large).set("9223372036854775808").ok());
}

TEST(Value, NumbersAreFinite) {
  double target = 0.25;
  const Value value = NumberValue(&target);
  for (const char* bad : {"", "nan", "inf", "1e999", "1,5"}) EXPECT_FALSE(value.set(bad).ok());
  EXPECT_EQ(target, 0.25);
  EXPECT_TRUE(value.set("-1e-3").ok());
  EXPECT_EQ(target, -1e-3);
}

TEST(Value, AnOptionalNumberIsUnsetUntilGiven) {
  std::optional<int64_t> target;
  const Value value = NumberValue(&target);
  EXPECT_EQ(value.get(), "");
  EXPECT_FALSE(value.set("").ok());
  EXPECT_FALSE(target);
  EXPECT_TRUE(value.set("0").ok());
  EXPECT_EQ(target, 0);
}

TEST(Value, DurationsHaveUnits) {
  Duration target = std::chrono::seconds(30);
  const Value value = DurationValue(&target);
  EXPECT_EQ(value.get(), "30s");
  EXPECT_EQ(value.set("250ms").value(), 0.25);
  EXPECT_EQ(target, std::chrono::milliseconds(250));
  EXPECT_EQ(value.set("1h30m").value(), 5400.0);
  EXPECT_EQ(value.get(), "1h30m");
  EXPECT_TRUE(value.set("0").ok());
  for (const char* bad : {"", "10", "10 s", "inf", "-inf", "s", "10y", "9999999999h"}) {
    EXPECT_FALSE(value.set(bad).ok()) << bad;
  }
}

TEST(Value, SizesAreInBytesUnlessTheySay) {
  int64_t target = int64_t{4} << 30;
  const Value value = BytesValue(&target);
  EXPECT_EQ(value.get(), "4GiB");
  const std::pair<const char*, int64_t> sizes[] = {{"0", 0},
                                                   {"65536", 65536},
                                                   {"12B", 12},
                                                   {"64KiB", 65536},
                                                   {"512MiB", int64_t{512} << 20},
                                                   {"1TiB", int64_t{1} << 40}};
  for (const auto& [text, bytes] : sizes) {
    EXPECT_TRUE(value.set(text).ok()) << text;
    EXPECT_EQ(target, bytes) << text;
  }
  for (const char* bad : {"", "4G", "4GB", "-1", "1.5GiB", "GiB", "9223372036854775807KiB"}) {
    EXPECT_FALSE(value.set(bad).ok()) << bad;
  }
  target = 1000;
  EXPECT_EQ(value.get(), "1000B");
}

}  // namespace
}  // namespace setu::config
