// SPDX-License-Identifier: Apache-2.0
#include "common/tracing/otlp.h"

#include <gtest/gtest.h>

namespace setu::tracing {
namespace {

namespace otlp = opentelemetry::proto;

Span Example() {
  Span span{.name = "prefill", .kind = SpanKind::kClient};
  span.context = {.trace_id = {0xAB, 1}, .span_id = {0xCD, 2}, .flags = 1};
  span.begin = TimePoint(Duration(100));
  span.end = TimePoint(Duration(250));
  return span;
}

otlp::trace::v1::Span Written(const Span& span) {
  const auto request = ToOtlp({&span, 1}, {}, Duration(1'000'000));
  return request.resource_spans(0).scope_spans(0).spans(0);
}

TEST(Otlp, CarriesNamesIdsAndTimes) {
  Span span = Example();
  span.parent = {.span_id = {0xEF}, .remote = false};
  span.events.push_back({"first_token", TimePoint(Duration(200))});
  const auto out = Written(span);
  EXPECT_EQ(out.trace_id(), std::string("\xAB\x01", 2) + std::string(14, '\0'));
  EXPECT_EQ(out.span_id(), std::string("\xCD\x02", 2) + std::string(6, '\0'));
  EXPECT_EQ(out.parent_span_id(), std::string("\xEF", 1) + std::string(7, '\0'));
  EXPECT_EQ(out.name(), "prefill");
  EXPECT_EQ(out.kind(), otlp::trace::v1::Span::SPAN_KIND_CLIENT);
  EXPECT_EQ(out.start_time_unix_nano(), 1'000'100u);
  EXPECT_EQ(out.end_time_unix_nano(), 1'000'250u);
  ASSERT_EQ(out.events_size(), 1);
  EXPECT_EQ(out.events(0).name(), "first_token");
  EXPECT_EQ(out.events(0).time_unix_nano(), 1'000'200u);
  EXPECT_EQ(out.flags(), 0x101u);
  EXPECT_FALSE(out.has_status());
}

TEST(Otlp, SaysWhetherTheParentIsElsewhere) {
  Span span = Example();
  EXPECT_EQ(Written(span).parent_span_id(), "");
  EXPECT_EQ(Written(span).flags(), 0x101u);
  span.parent = {.span_id = {1}, .remote = true};
  EXPECT_EQ(Written(span).flags(), 0x301u);
}

TEST(Otlp, KeepsTheKindOfEachValue) {
  Span span = Example();
  span.attributes = {{"s", "text"}, {"i", int64_t{-7}}, {"d", 0.5}, {"b", true}};
  const auto out = Written(span);
  ASSERT_EQ(out.attributes_size(), 4);
  EXPECT_EQ(out.attributes(0).key(), "s");
  EXPECT_EQ(out.attributes(0).value().string_value(), "text");
  EXPECT_EQ(out.attributes(1).value().int_value(), -7);
  EXPECT_EQ(out.attributes(2).value().double_value(), 0.5);
  EXPECT_TRUE(out.attributes(3).value().bool_value());
}

TEST(Otlp, AnErrorIsAStatus) {
  Span span = Example();
  span.error = absl::UnavailableError("gone");
  EXPECT_EQ(Written(span).status().code(), otlp::trace::v1::Status::STATUS_CODE_ERROR);
  EXPECT_EQ(Written(span).status().message(), "gone");
}

// Error messages come from other processes too.
TEST(Otlp, TextsAreShortAndUtf8) {
  Span span = Example();
  span.error = absl::UnavailableError("caf\xc3\xa9 \xff nothing of this");
  span.attributes = {{"s", std::string(1000, 'x')}};
  EXPECT_EQ(Written(span).status().message(), "caf\xc3\xa9 ");
  EXPECT_EQ(Written(span).attributes(0).value().string_value(), std::string(256, 'x'));
}

TEST(Otlp, AllSpansHaveOneResource) {
  const std::vector<Span> spans = {Example(), Example()};
  const auto request = ToOtlp(spans, {{"service.name", "setu-router"}}, Duration::zero());
  ASSERT_EQ(request.resource_spans_size(), 1);
  const auto& group = request.resource_spans(0);
  ASSERT_EQ(group.resource().attributes_size(), 1);
  EXPECT_EQ(group.resource().attributes(0).key(), "service.name");
  EXPECT_EQ(group.resource().attributes(0).value().string_value(), "setu-router");
  ASSERT_EQ(group.scope_spans_size(), 1);
  EXPECT_EQ(group.scope_spans(0).scope().name(), "setu");
  EXPECT_EQ(group.scope_spans(0).spans_size(), 2);
}

}  // namespace
}  // namespace setu::tracing
