// SPDX-License-Identifier: Apache-2.0
// A request's timeline as the spans of a trace: its caller's where there is one, which also says
// whether it is recorded; else one of its own. The request is a span; its phases, its attempts and
// their transfers are its children; one that was refused on its arrival has none. Says when, where
// and how many, never what: no text, no token.
//
//   RequestTracer tracer(random, [&](std::vector<tracing::Span> trace) { exporter.Add(...); });
//   arrival.trace = tracer.Begin(traceparent);       // nullopt: not to be recorded
//   ...
//   if (arrival.trace) arrival.trace->tracer->End(*arrival.trace, ended);
//   tracer.Refused(origin, clock.Now(), status);      // in place of both
#ifndef SETU_SERVICES_ROUTER_REQUEST_TRACER_H_
#define SETU_SERVICES_ROUTER_REQUEST_TRACER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/tracing/span.h"
#include "common/tracing/trace_context.h"
#include "services/router/origin.h"
#include "services/router/timeline.h"

namespace setu::router {

class RequestTracer;

// Of a request that is recorded.
struct RequestTrace {
  RequestTracer* tracer = nullptr;
  tracing::TraceContext context;          // of its own span; what its workers are told
  std::optional<tracing::SpanId> caller;  // the span that it is a part of
};

struct EndedRequest {
  std::string_view model;
  std::string_view id;  // as its workers were told
  const Timeline& timeline;
  TimePoint at;
  const absl::Status& status;
  int64_t choices = 1;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t answer_tokens = 0;  // of all choices
};

class RequestTracer {
 public:
  using Random = std::function<uint64_t()>;
  using Sink = std::function<void(std::vector<tracing::Span>)>;

  // Both are called by whoever calls this, who is one thread.
  RequestTracer(Random random, Sink sink) : random_(std::move(random)), sink_(std::move(sink)) {}

  // `traceparent`: of the request, may be empty.
  std::optional<RequestTrace> Begin(std::string_view traceparent);
  void End(const RequestTrace& trace, const EndedRequest& request);
  void Refused(const Origin& origin, TimePoint now, const absl::Status& status);

 private:
  tracing::SpanId NewSpanId();

  const Random random_;
  const Sink sink_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_REQUEST_TRACER_H_
