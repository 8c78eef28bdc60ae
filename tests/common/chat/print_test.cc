// SPDX-License-Identifier: Apache-2.0
#include "common/chat/print.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace setu::chat {
namespace {

std::string Printed(const Value& value) {
  Meter meter({});
  const auto text = ToText(value, meter);
  return text.ok() ? std::string(text->view()) : text.status().ToString();
}

TEST(Print, FloatsAreWrittenAsPythonWritesThem) {
  EXPECT_EQ(Printed(0.0), "0.0");
  EXPECT_EQ(Printed(-0.0), "-0.0");
  EXPECT_EQ(Printed(0.1), "0.1");
  EXPECT_EQ(Printed(1e15), "1000000000000000.0");
  EXPECT_EQ(Printed(1e16), "1e+16");
  EXPECT_EQ(Printed(1.5e-5), "1.5e-05");
  EXPECT_EQ(Printed(0.0001), "0.0001");
  EXPECT_EQ(Printed(1e300), "1e+300");
  EXPECT_EQ(Printed(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(Printed(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(Print, SimpleValues) {
  EXPECT_EQ(Printed(Undefined{}), "");
  EXPECT_EQ(Printed(None{}), "None");
  EXPECT_EQ(Printed(true), "True");
  EXPECT_EQ(Printed(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
}

TEST(Print, TheWriterStopsBeforeTheLimit) {
  Meter meter({.output_bytes = 4});
  TextWriter writer(meter);
  EXPECT_TRUE(writer.Append("abcd").ok());
  EXPECT_FALSE(writer.Append("e").ok());
  EXPECT_EQ(writer.Take().view(), "abcd");
}

}  // namespace
}  // namespace setu::chat
