// SPDX-License-Identifier: Apache-2.0
#include "common/tracing/otlp.h"

#include <string>
#include <variant>

namespace setu::tracing {
namespace {

namespace otlp = opentelemetry::proto;

// Of Span.flags: it is known whether the parent is remote, and it is.
constexpr uint32_t kHasIsRemote = 0x100, kIsRemote = 0x200;

template <typename Bytes>
std::string BytesOf(const Bytes& id) {
  return std::string(id.begin(), id.end());
}

struct SetValue {
  otlp::common::v1::AnyValue& out;
  void operator()(const std::string& value) const { out.set_string_value(ShortText(value)); }
  void operator()(int64_t value) const { out.set_int_value(value); }
  void operator()(double value) const { out.set_double_value(value); }
  void operator()(bool value) const { out.set_bool_value(value); }
};

void Set(const Attribute& attribute, otlp::common::v1::KeyValue& out) {
  out.set_key(attribute.key);
  std::visit(SetValue{*out.mutable_value()}, attribute.value);
}

otlp::trace::v1::Span::SpanKind KindOf(SpanKind kind) {
  switch (kind) {
    case SpanKind::kInternal:
      return otlp::trace::v1::Span::SPAN_KIND_INTERNAL;
    case SpanKind::kServer:
      return otlp::trace::v1::Span::SPAN_KIND_SERVER;
    case SpanKind::kClient:
      return otlp::trace::v1::Span::SPAN_KIND_CLIENT;
  }
  return otlp::trace::v1::Span::SPAN_KIND_UNSPECIFIED;
}

void Set(const Span& span, Duration unix_offset, otlp::trace::v1::Span& out) {
  const auto unix_nanoseconds = [&](TimePoint at) {
    return static_cast<uint64_t>((at.time_since_epoch() + unix_offset).count());
  };
  out.set_trace_id(BytesOf(span.context.trace_id));
  out.set_span_id(BytesOf(span.context.span_id));
  uint32_t flags = span.context.flags | kHasIsRemote;
  if (span.parent) {
    out.set_parent_span_id(BytesOf(span.parent->span_id));
    if (span.parent->remote) flags |= kIsRemote;
  }
  out.set_flags(flags);
  out.set_name(span.name);
  out.set_kind(KindOf(span.kind));
  out.set_start_time_unix_nano(unix_nanoseconds(span.begin));
  out.set_end_time_unix_nano(unix_nanoseconds(span.end));
  for (const Attribute& attribute : span.attributes) Set(attribute, *out.add_attributes());
  for (const Event& event : span.events) {
    out.add_events()->set_name(event.name);
    out.mutable_events()->rbegin()->set_time_unix_nano(unix_nanoseconds(event.at));
  }
  if (span.error.ok()) return;
  out.mutable_status()->set_code(otlp::trace::v1::Status::STATUS_CODE_ERROR);
  out.mutable_status()->set_message(
      ShortText({span.error.message().data(), span.error.message().size()}));
}

}  // namespace

otlp::collector::trace::v1::ExportTraceServiceRequest ToOtlp(std::span<const Span> spans,
                                                             const Resource& resource,
                                                             Duration unix_offset) {
  otlp::collector::trace::v1::ExportTraceServiceRequest request;
  otlp::trace::v1::ResourceSpans& group = *request.add_resource_spans();
  for (const Attribute& attribute : resource) {
    Set(attribute, *group.mutable_resource()->add_attributes());
  }
  otlp::trace::v1::ScopeSpans& scope = *group.add_scope_spans();
  scope.mutable_scope()->set_name("setu");
  for (const Span& span : spans) Set(span, unix_offset, *scope.add_spans());
  return request;
}

}  // namespace setu::tracing
