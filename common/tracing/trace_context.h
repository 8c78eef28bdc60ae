// SPDX-License-Identifier: Apache-2.0
// Which trace and span something belongs to, as the W3C's `traceparent` header carries it
// (www.w3.org/TR/trace-context, level 1).
//
//   const std::optional<TraceContext> caller = ParseTraceparent(header);
//   headers.emplace_back("traceparent", Traceparent(own));
#ifndef SETU_COMMON_TRACING_TRACE_CONTEXT_H_
#define SETU_COMMON_TRACING_TRACE_CONTEXT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace setu::tracing {

// Of neither are all bytes 0.
using TraceId = std::array<uint8_t, 16>;
using SpanId = std::array<uint8_t, 8>;

struct TraceContext {
  static constexpr uint8_t kSampled = 1;

  TraceId trace_id{};
  SpanId span_id{};
  uint8_t flags = 0;

  bool sampled() const { return (flags & kSampled) != 0; }
  bool operator==(const TraceContext&) const = default;
};

// Of a header in any version; nullopt where it is none: then its receiver begins a trace.
std::optional<TraceContext> ParseTraceparent(std::string_view header);
// In version 00.
std::string Traceparent(const TraceContext& context);

}  // namespace setu::tracing

#endif  // SETU_COMMON_TRACING_TRACE_CONTEXT_H_
