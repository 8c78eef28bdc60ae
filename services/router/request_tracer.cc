// SPDX-License-Identifier: Apache-2.0
#include "services/router/request_tracer.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace setu::router {
namespace {

using tracing::Span;
using tracing::SpanId;

constexpr const char* kPhaseNames[] = {"queue", "grant", "prefill", "decode"};
static_assert(std::size(kPhaseNames) == Timeline::kPhases);

// None of its bytes may all be 0.
void Fill(std::span<uint8_t> id, const RequestTracer::Random& random) {
  for (size_t at = 0; at < id.size(); at += sizeof(uint64_t)) {
    const uint64_t bits = random();
    std::memcpy(&id[at], &bits, sizeof(bits));
  }
  if (std::all_of(id.begin(), id.end(), [](uint8_t byte) { return byte == 0; })) id.back() = 1;
}

// What a gRPC server's span calls an error: not what the client did, nor lack of room.
bool IsOurs(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

// Names of OpenTelemetry's conventions (gen_ai, rpc) where it has one.
Span CallSpan(const RequestTrace& trace, TimePoint begin, TimePoint end,
              const absl::Status& status) {
  Span span{.context = trace.context,
            .name = "setu.v1.InferenceService/Generate",
            .kind = tracing::SpanKind::kServer,
            .begin = begin,
            .end = end};
  if (trace.caller) span.parent = {.span_id = *trace.caller, .remote = true};
  if (IsOurs(status)) span.error = status;
  span.attributes = {{"rpc.system", "grpc"},
                     {"rpc.service", "setu.v1.InferenceService"},
                     {"rpc.method", "Generate"},
                     {"rpc.grpc.status_code", static_cast<int64_t>(status.raw_code())}};
  return span;
}

Span SpanOf(const RequestTrace& trace, const EndedRequest& request) {
  const TimePoint begin = request.timeline.Begin(Phase::kQueue, request.at);
  Span span = CallSpan(trace, begin, request.at, request.status);
  const setu::v1::Timings timings = request.timeline.Timings(request.at);
  const std::initializer_list<tracing::Attribute> figures = {
      {"gen_ai.operation.name", "text_completion"},
      {"gen_ai.request.model", std::string(request.model)},
      {"gen_ai.usage.input_tokens", request.prompt_tokens},
      {"gen_ai.usage.output_tokens", request.answer_tokens},
      {"setu.request_id", std::string(request.id)},
      {"setu.choices", request.choices},
      {"setu.cached_tokens", request.cached_tokens},
      {"setu.attempts", static_cast<int64_t>(timings.attempts())},
      {"setu.kv_bytes", static_cast<int64_t>(timings.kv_bytes())}};
  span.attributes.insert(span.attributes.end(), figures);
  if (request.timeline.phase() == Phase::kDecode) {
    span.events.push_back({"first_token", request.timeline.Begin(Phase::kDecode, request.at)});
  }
  return span;
}

// Its transfer is what came after the first token: the tail of its time.
Span AttemptSpan(const Attempt& attempt, size_t number, const EndedRequest& request) {
  Span span{.name = "attempt",
            .kind = tracing::SpanKind::kClient,
            .begin = attempt.begin,
            .end = attempt.end.value_or(request.at),
            .error = attempt.end ? attempt.status : request.status};
  span.attributes = {{"setu.attempt", static_cast<int64_t>(number)},
                     {"setu.decode_worker", attempt.decode},
                     {"setu.prefill_worker", attempt.prefill},
                     {"setu.local_prefill", attempt.decode == attempt.prefill},
                     {"setu.kv_bytes", static_cast<int64_t>(attempt.kv_bytes)}};
  return span;
}

Span TransferSpan(const Attempt& attempt, TimePoint end) {
  return {.name = "transfer", .begin = std::max(attempt.begin, end - attempt.tail), .end = end};
}

}  // namespace

SpanId RequestTracer::NewSpanId() {
  SpanId id;
  Fill(id, random_);
  return id;
}

std::optional<RequestTrace> RequestTracer::Begin(std::string_view traceparent) {
  const std::optional<tracing::TraceContext> caller = tracing::ParseTraceparent(traceparent);
  if (caller && !caller->sampled()) return std::nullopt;
  RequestTrace trace{.tracer = this};
  if (caller) {
    trace.context = *caller;
    trace.caller = caller->span_id;
  } else {
    Fill(trace.context.trace_id, random_);
    trace.context.flags = tracing::TraceContext::kSampled;
  }
  trace.context.span_id = NewSpanId();
  return trace;
}

void RequestTracer::End(const RequestTrace& trace, const EndedRequest& request) {
  std::vector<Span> spans;
  const auto add = [&](Span span, const SpanId& parent) {
    span.context = trace.context;
    span.context.span_id = NewSpanId();
    span.parent = {.span_id = parent};
    spans.push_back(std::move(span));
    return spans.back().context.span_id;
  };
  const Timeline& timeline = request.timeline;
  spans.push_back(SpanOf(trace, request));
  for (size_t i = 0; i <= static_cast<size_t>(timeline.phase()); ++i) {
    const auto phase = static_cast<Phase>(i);
    const TimePoint begin = timeline.Begin(phase, request.at);
    add({.name = kPhaseNames[i], .begin = begin, .end = begin + timeline.In(phase, request.at)},
        trace.context.span_id);
  }
  for (size_t i = 0; i < timeline.attempts().size(); ++i) {
    const Attempt& attempt = timeline.attempts()[i];
    const SpanId id = add(AttemptSpan(attempt, i + 1, request), trace.context.span_id);
    const TimePoint end = attempt.end.value_or(request.at);
    if (attempt.tail > Duration::zero()) add(TransferSpan(attempt, end), id);
  }
  sink_(std::move(spans));
}

void RequestTracer::Refused(const Origin& origin, TimePoint now, const absl::Status& status) {
  const std::optional<RequestTrace> trace = Begin(origin.traceparent);
  if (!trace) return;
  Span span = CallSpan(*trace, origin.at, now, status);
  if (!origin.request_id.empty()) span.attributes.push_back({"setu.request_id", origin.request_id});
  sink_({std::move(span)});
}

}  // namespace setu::router
