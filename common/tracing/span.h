// SPDX-License-Identifier: Apache-2.0
// What somebody did from one moment to another, as a part of a trace.
//
//   Span span{.context = own, .name = "prefill", .begin = begin, .end = end};
//   span.attributes.push_back({"setu.attempts", int64_t{2}});
#ifndef SETU_COMMON_TRACING_SPAN_H_
#define SETU_COMMON_TRACING_SPAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/utf8.h"
#include "common/tracing/trace_context.h"

namespace setu::tracing {

// What is passed on of another program's text, such as a status message: a part of it does.
inline std::string ShortText(std::string_view text) {
  constexpr size_t kMaxBytes = 256;
  return std::string(Utf8Start(text, kMaxBytes));
}

// Texts are UTF-8, and never of a prompt or of an answer.
struct Attribute {
  const char* key;  // a literal
  std::variant<std::string, int64_t, double, bool> value;
};

struct Event {
  const char* name;  // a literal
  TimePoint at;
};

struct Parent {
  SpanId span_id{};
  bool remote = false;  // in another process
};

enum class SpanKind : uint8_t { kInternal, kServer, kClient };

struct Span {
  TraceContext context;
  std::optional<Parent> parent;  // absent: the first of its trace
  const char* name = "";         // a literal
  SpanKind kind = SpanKind::kInternal;
  TimePoint begin;
  TimePoint end;
  std::vector<Attribute> attributes;
  std::vector<Event> events;
  absl::Status error;  // OK: none
};

}  // namespace setu::tracing

#endif  // SETU_COMMON_TRACING_SPAN_H_
