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
  for (const char* yes : {"true", "1"}) {
    target = false;
    EXPECT_TRUE(value.set(yes).ok());
    EXPECT_TRUE(target) << yes;
  }
  for (const char* bad : {"yes", "TRUE", "on", "2", "", " 1"}) {
    EXPECT_EQ(value.set(bad).status().message(), "must be true, false, 1 or 0") << bad;
    EXPECT_TRUE(target);
  }
  for (const char* no : {"false", "0"}) {
    target = true;
    EXPECT_TRUE(value.set(no).ok());
    EXPECT_FALSE(target) << no;
  }
}

TEST(Value, AnAddressIsAHostAndAPort) {
  std::string target = "127.0.0.1:50051";
  const Value listen = ListenValue(&target);
  EXPECT_TRUE(listen.set("[::]:0").ok());
  EXPECT_EQ(target, "[::]:0");
  EXPECT_FALSE(listen.set("dns:///a:1").ok());
  const Value reach = AddressValue(&target);
  EXPECT_EQ(reach.set("http://a:1").status().message(),
            "must be HOST:PORT alone; leave out http://");
  EXPECT_TRUE(reach.set("dns:///a:1").ok());
  EXPECT_EQ(target, "dns:///a:1");
  for (const char* bad : {"", "a", "a:0", "a:65536", "unix:/tmp/a", "http://a:1", "dns:///a"}) {
    EXPECT_FALSE(reach.set(bad).ok()) << bad;
  }
  EXPECT_EQ(target, "dns:///a:1");
}

TEST(Value, AddressesAreAllValidAndDifferent) {
  std::vector<std::string> target;
  const Value value = AddressesValue(&target);
  EXPECT_TRUE(value.set("a:1, dns:///b:2,[::1]:3").ok());
  EXPECT_THAT(target, ElementsAre("a:1", "dns:///b:2", "[::1]:3"));
  const std::pair<const char*, const char*> refused[] = {
      {"a:1,,b:2", "must be a list a,b,c without empty parts"},
      {"a:1,", "must be a list a,b,c without empty parts"},
      {"a:1,b:99999",
       "must be a list of addresses: 'b:99999' must be HOST:PORT, with a name, an IPv4 address or "
       "an [IPv6 address] and a port of 1 to 65535"},
      {"a:1,A:1", "must be a list of different addresses: 'A:1' stands in it twice"},
      {"a:1,dns:///a:1", "must be a list of different addresses: 'dns:///a:1' stands in it twice"},
  };
  for (const auto& [text, rule] : refused) {
    EXPECT_EQ(value.set(text).status().message(), rule);
  }
  EXPECT_EQ(value.get(), "a:1,dns:///b:2,[::1]:3");
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
