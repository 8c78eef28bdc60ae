// SPDX-License-Identifier: Apache-2.0
#include "common/tracing/trace_context.h"

#include <gtest/gtest.h>

namespace setu::tracing {
namespace {

constexpr char kHeader[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceContext, IsReadFromAHeaderAndWrittenAsOne) {
  const auto context = ParseTraceparent(kHeader);
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace_id.front(), 0x0a);
  EXPECT_EQ(context->trace_id.back(), 0x9c);
  EXPECT_EQ(context->span_id.front(), 0xb7);
  EXPECT_EQ(context->span_id.back(), 0x31);
  EXPECT_TRUE(context->sampled());
  EXPECT_EQ(Traceparent(*context), kHeader);
}

TEST(TraceContext, IsSampledByItsLowestFlagAlone) {
  const std::string start(kHeader, 53);
  EXPECT_FALSE(ParseTraceparent(start + "00")->sampled());
  EXPECT_FALSE(ParseTraceparent(start + "fe")->sampled());
  EXPECT_TRUE(ParseTraceparent(start + "ff")->sampled());
  EXPECT_EQ(ParseTraceparent(start + "ff")->flags, 1) << "the others mean nothing to us";
}

TEST(TraceContext, OfALaterVersionMayGoOn) {
  const std::string rest = std::string(kHeader).substr(2);
  EXPECT_TRUE(ParseTraceparent("cc" + rest).has_value());
  EXPECT_TRUE(ParseTraceparent("cc" + rest + "-more").has_value());
  EXPECT_FALSE(ParseTraceparent("cc" + rest + "more").has_value());
  EXPECT_FALSE(ParseTraceparent("00" + rest + "-more").has_value());
  EXPECT_FALSE(ParseTraceparent("ff" + rest).has_value());
}

TEST(TraceContext, IsNoneWhereTheHeaderIsNone) {
  EXPECT_FALSE(ParseTraceparent("").has_value());
  EXPECT_FALSE(ParseTraceparent("00-0-0-01").has_value());
  EXPECT_FALSE(ParseTraceparent("00-00000000000000000000000000000000-b7ad6b7169203331-01"));
  EXPECT_FALSE(ParseTraceparent("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"));
  // Each byte in turn: a letter that is no digit, an upper-case digit, a dash in its place.
  for (size_t i = 0; i < sizeof(kHeader) - 1; ++i) {
    for (const char wrong : {'g', 'A', '-'}) {
      std::string header = kHeader;
      if (header[i] == wrong) continue;
      header[i] = wrong;
      EXPECT_FALSE(ParseTraceparent(header).has_value()) << header;
    }
    EXPECT_FALSE(ParseTraceparent(std::string(kHeader, i)).has_value()) << i;
  }
}

}  // namespace
}  // namespace setu::tracing
