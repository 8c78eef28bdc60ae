// SPDX-License-Identifier: Apache-2.0
#include "services/router/request_tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace setu::router {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

constexpr char kCaller[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0";
constexpr TimePoint kArrival(std::chrono::hours(3));

TimePoint At(int ms) { return kArrival + milliseconds(ms); }

class RequestTracerTest : public ::testing::Test {
 protected:
  std::vector<tracing::Span> End(const RequestTrace& trace, const Timeline& timeline, int at,
                                 const absl::Status& status = absl::OkStatus()) {
    spans_.clear();
    tracer_.End(trace, {.model = "letters",
                        .id = "r-7",
                        .timeline = timeline,
                        .at = At(at),
                        .status = status,
                        .choices = 2,
                        .prompt_tokens = 30,
                        .cached_tokens = 16,
                        .answer_tokens = 12});
    return spans_;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const tracing::Span& span : spans_) names.push_back(span.name);
    return names;
  }
  const tracing::Span& Named(const std::string& name, int nth = 0) const {
    for (const tracing::Span& span : spans_) {
      if (span.name == name && nth-- == 0) return span;
    }
    ADD_FAILURE() << "no span " << name;
    return spans_.front();
  }

  uint64_t next_ = 1;
  std::vector<tracing::Span> spans_;
  RequestTracer tracer_{[this] { return next_++; },
                        [this](std::vector<tracing::Span> trace) { spans_ = std::move(trace); }};
};

// "key=value" of all attributes, numbers as they are.
std::map<std::string, std::string> Attributes(const tracing::Span& span) {
  std::map<std::string, std::string> out;
  for (const tracing::Attribute& attribute : span.attributes) {
    struct Text {
      std::string operator()(const std::string& s) const { return s; }
      std::string operator()(int64_t i) const { return std::to_string(i); }
      std::string operator()(double d) const { return std::to_string(d); }
      std::string operator()(bool b) const { return b ? "true" : "false"; }
    };
    out[attribute.key] = std::visit(Text(), attribute.value);
  }
  return out;
}

Timeline Whole() {
  Timeline timeline(kArrival);
  timeline.Enter(Phase::kGrant, At(10));
  timeline.Enter(Phase::kPrefill, At(30));
  const uint32_t attempt = timeline.BeginAttempt("d:1", "p:1", At(30));
  timeline.Enter(Phase::kDecode, At(60));
  timeline.Moved(attempt, 4096);
  timeline.EndAttempt(attempt, absl::OkStatus(), At(70));
  timeline.Trailed(attempt, milliseconds(8));
  return timeline;
}

TEST_F(RequestTracerTest, ARequestOfNoTraceBeginsOne) {
  const auto first = tracer_.Begin(""), second = tracer_.Begin("no trace");
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(first->caller.has_value());
  EXPECT_TRUE(first->context.sampled());
  EXPECT_NE(first->context.trace_id, second->context.trace_id);
  EXPECT_NE(first->context.span_id, second->context.span_id);
  EXPECT_TRUE(tracing::ParseTraceparent(tracing::Traceparent(first->context)).has_value());
}

TEST_F(RequestTracerTest, TheCallersTraceGoesOn) {
  const auto trace = tracer_.Begin(std::string(kCaller) + "1");
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->context.trace_id.front(), 0x0a);
  EXPECT_EQ(trace->caller->front(), 0xb7);
  EXPECT_NE(trace->context.span_id, *trace->caller);
}

TEST_F(RequestTracerTest, WhatTheCallerDoesNotSampleIsNotRecorded) {
  EXPECT_FALSE(tracer_.Begin(std::string(kCaller) + "0").has_value());
}

TEST_F(RequestTracerTest, ZeroesAreNoId) {
  RequestTracer tracer([] { return 0; }, nullptr);
  EXPECT_TRUE(tracing::ParseTraceparent(tracing::Traceparent(tracer.Begin("")->context)));
}

TEST_F(RequestTracerTest, PhasesAreChildrenThatFillTheRequestsTime) {
  const auto trace = tracer_.Begin(std::string(kCaller) + "1");
  End(*trace, Whole(), 100);
  EXPECT_THAT(Names(), ElementsAre("setu.v1.InferenceService/Generate", "queue", "grant", "prefill",
                                   "decode", "attempt", "transfer"));
  const tracing::Span& request = spans_[0];
  EXPECT_EQ(request.kind, tracing::SpanKind::kServer);
  EXPECT_EQ(request.context, trace->context);
  EXPECT_EQ(request.parent->span_id, *trace->caller);
  EXPECT_TRUE(request.parent->remote);
  EXPECT_EQ(request.begin, kArrival);
  EXPECT_EQ(request.end, At(100));
  TimePoint at = request.begin;
  for (const char* phase : {"queue", "grant", "prefill", "decode"}) {
    const tracing::Span& span = Named(phase);
    EXPECT_EQ(span.begin, at) << phase;
    EXPECT_EQ(span.parent->span_id, request.context.span_id);
    EXPECT_FALSE(span.parent->remote);
    EXPECT_EQ(span.context.trace_id, request.context.trace_id);
    at = span.end;
  }
  EXPECT_EQ(at, request.end);
  EXPECT_EQ(Named("prefill").end, At(60));
  ASSERT_EQ(request.events.size(), 1u);
  EXPECT_STREQ(request.events[0].name, "first_token");
  EXPECT_EQ(request.events[0].at, At(60));
}

TEST_F(RequestTracerTest, EachSpanHasAnIdOfItsOwn) {
  End(*tracer_.Begin(""), Whole(), 100);
  std::set<tracing::SpanId> ids;
  for (const tracing::Span& span : spans_) ids.insert(span.context.span_id);
  EXPECT_EQ(ids.size(), spans_.size());
  EXPECT_FALSE(spans_[0].parent.has_value()) << "the first of its trace";
}

TEST_F(RequestTracerTest, ATransferIsTheTailOfItsAttempt) {
  End(*tracer_.Begin(""), Whole(), 100);
  const tracing::Span& attempt = Named("attempt");
  EXPECT_EQ(attempt.kind, tracing::SpanKind::kClient);
  EXPECT_EQ(attempt.begin, At(30));
  EXPECT_EQ(attempt.end, At(70));
  EXPECT_EQ(Named("transfer").begin, At(62));
  EXPECT_EQ(Named("transfer").end, At(70));
  EXPECT_EQ(Named("transfer").parent->span_id, attempt.context.span_id);
}

TEST_F(RequestTracerTest, EveryAttemptIsASpanWithItsEnd) {
  Timeline timeline(kArrival);
  timeline.Enter(Phase::kPrefill, At(10));
  const uint32_t failed = timeline.BeginAttempt("d:1", "p:1", At(10));
  timeline.EndAttempt(failed, absl::UnavailableError("lost"), At(20));
  timeline.EndAttempt(timeline.BeginAttempt("d:1", "p:2", At(25)), absl::OkStatus(), At(30));
  timeline.BeginAttempt("d:2", "d:2", At(40));
  End(*tracer_.Begin(""), timeline, 50);
  EXPECT_EQ(Named("attempt", 0).end, At(20));
  EXPECT_EQ(Named("attempt", 0).error, absl::UnavailableError("lost"));
  EXPECT_TRUE(Named("attempt", 1).error.ok());
  EXPECT_EQ(Attributes(Named("attempt", 1))["setu.prefill_worker"], "p:2");
  EXPECT_EQ(Attributes(Named("attempt", 1))["setu.local_prefill"], "false");
  EXPECT_EQ(Named("attempt", 2).end, At(50)) << "it ended with its request";
  EXPECT_EQ(Attributes(Named("attempt", 2))["setu.attempt"], "3");
  EXPECT_EQ(Attributes(Named("attempt", 2))["setu.local_prefill"], "true");
}

TEST_F(RequestTracerTest, ARequestThatFailsEndsInThePhaseItReached) {
  Timeline timeline(kArrival);
  timeline.Enter(Phase::kGrant, At(10));
  End(*tracer_.Begin(""), timeline, 40, absl::UnavailableError("no worker left"));
  EXPECT_THAT(Names(), ElementsAre("setu.v1.InferenceService/Generate", "queue", "grant"));
  EXPECT_EQ(Named("grant").end, At(40));
  EXPECT_EQ(spans_[0].error, absl::UnavailableError("no worker left"));
  EXPECT_EQ(Attributes(spans_[0])["rpc.grpc.status_code"], "14");
  EXPECT_TRUE(spans_[0].events.empty());
}

TEST_F(RequestTracerTest, OneThatWasRefusedIsASpanAlone) {
  const Origin origin{At(0), "r-7", std::string(kCaller) + "1"};
  tracer_.Refused(origin, At(3), absl::UnavailableError("this router is draining"));
  ASSERT_THAT(Names(), ElementsAre("setu.v1.InferenceService/Generate"));
  const tracing::Span& span = spans_[0];
  EXPECT_EQ(span.kind, tracing::SpanKind::kServer);
  EXPECT_EQ(span.context.trace_id.front(), 0x0a);
  EXPECT_EQ(span.parent->span_id.front(), 0xb7);
  EXPECT_EQ(span.begin, At(0));
  EXPECT_EQ(span.end, At(3));
  EXPECT_TRUE(absl::IsUnavailable(span.error));
  EXPECT_EQ(Attributes(span)["rpc.grpc.status_code"], "14");
  EXPECT_EQ(Attributes(span)["setu.request_id"], "r-7");
}

TEST_F(RequestTracerTest, WhoNamesNoRequestAndNoTraceIsTracedAllTheSame) {
  tracer_.Refused({.at = At(0)}, At(3), absl::UnauthenticatedError("no"));
  ASSERT_EQ(spans_.size(), 1u);
  EXPECT_FALSE(spans_[0].parent.has_value());
  EXPECT_TRUE(spans_[0].error.ok()) << "the client's error";
  EXPECT_EQ(Attributes(spans_[0])["rpc.grpc.status_code"], "16");
  EXPECT_FALSE(Attributes(spans_[0]).contains("setu.request_id"));
}

TEST_F(RequestTracerTest, WhatTheCallerDoesNotSampleMayBeRefusedUnseen) {
  tracer_.Refused({At(0), "r-7", std::string(kCaller) + "0"}, At(3), absl::OkStatus());
  EXPECT_TRUE(spans_.empty());
}

TEST_F(RequestTracerTest, WhatTheClientDidIsNoErrorOfOurs) {
  End(*tracer_.Begin(""), Timeline(kArrival), 40, absl::CancelledError("the client left"));
  EXPECT_TRUE(spans_[0].error.ok());
  EXPECT_EQ(Attributes(spans_[0])["rpc.grpc.status_code"], "1");
}

TEST_F(RequestTracerTest, ItsFiguresAreAttributes) {
  End(*tracer_.Begin(""), Whole(), 100);
  auto attributes = Attributes(spans_[0]);
  EXPECT_EQ(attributes["gen_ai.request.model"], "letters");
  EXPECT_EQ(attributes["gen_ai.usage.input_tokens"], "30");
  EXPECT_EQ(attributes["gen_ai.usage.output_tokens"], "12");
  EXPECT_EQ(attributes["setu.request_id"], "r-7");
  EXPECT_EQ(attributes["setu.choices"], "2");
  EXPECT_EQ(attributes["setu.cached_tokens"], "16");
  EXPECT_EQ(attributes["setu.attempts"], "1");
  EXPECT_EQ(attributes["setu.kv_bytes"], "4096");
  EXPECT_EQ(attributes["rpc.grpc.status_code"], "0");
}

// However often it was moved: a batch has to hold it.
TEST_F(RequestTracerTest, ATraceIsBounded) {
  Timeline timeline(kArrival);
  timeline.Enter(Phase::kDecode, At(1));
  for (int i = 0; i < 1000; ++i)
    timeline.Trailed(timeline.BeginAttempt("d", "p", At(1)), milliseconds(1));
  End(*tracer_.Begin(""), timeline, 100);
  EXPECT_EQ(spans_.size(), 1 + Timeline::kPhases + 2 * Timeline::kMaxAttempts);
}

}  // namespace
}  // namespace setu::router
