// SPDX-License-Identifier: Apache-2.0
// Traces of requests through a router whose workers fail as they are told to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/services/router/router_fixture.h"

namespace setu::router {
namespace {

using Point = test::PrefillPlan::Point;
using ::testing::ElementsAre;

constexpr char kCaller[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr char kUnsampled[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

class TracesTest : public RouterFixture {
 protected:
  using Trace = std::vector<tracing::Span>;

  void SetUp() override {
    RouterFixture::SetUp();
    options_.tracer = &tracer_;
  }
  std::vector<Trace> Traces() {
    const std::lock_guard lock(mutex_);
    return traces_;
  }
  // A request's trace is there before the client hears of its end.
  Trace Only() {
    EXPECT_EQ(Traces().size(), 1u);
    return Traces().empty() ? Trace(1) : Traces()[0];
  }
  static std::vector<const tracing::Span*> Named(const Trace& trace, const std::string& name) {
    std::vector<const tracing::Span*> found;
    for (const tracing::Span& span : trace) {
      if (span.name == name) found.push_back(&span);
    }
    return found;
  }
  static void ExpectPhasesFill(const Trace& trace) {
    Duration sum{0};
    for (const char* phase : {"queue", "grant", "prefill", "decode"}) {
      for (const tracing::Span* span : Named(trace, phase)) sum += span->end - span->begin;
    }
    EXPECT_EQ(sum, trace[0].end - trace[0].begin);
  }

  std::mutex mutex_;
  std::vector<Trace> traces_;
  uint64_t next_id_ = 1;
  RequestTracer tracer_{[this] { return next_id_++; },
                        [this](Trace trace) {
                          const std::lock_guard lock(mutex_);
                          traces_.push_back(std::move(trace));
                        }};
};

TEST_F(TracesTest, ARequestLeavesOneAndTheCanaryNone) {
  StartReady();
  EXPECT_TRUE(Traces().empty());
  test::Answer answer = Generate(Request(20));
  ExpectWhole(answer, 20);
  const Trace trace = Only();
  ExpectPhasesFill(trace);
  ASSERT_EQ(Named(trace, "attempt").size(), 1u);
  EXPECT_TRUE(Named(trace, "attempt")[0]->error.ok());
  const setu::v1::Timings& timings = answer.choices[0].finished[0].timings();
  EXPECT_DOUBLE_EQ(timings.prefill_ms(), Milliseconds(Named(trace, "prefill")[0]->end -
                                                      Named(trace, "prefill")[0]->begin));
}

TEST_F(TracesTest, ItsWorkersAreToldOfItsSpan) {
  StartReady();
  ExpectWhole(Generate(Request(5), {.headers = {{"traceparent", kCaller}}}), 5);
  const Trace trace = Only();
  const std::string told = tracing::Traceparent(trace[0].context);
  EXPECT_NE(told, kCaller);
  EXPECT_EQ(told.substr(0, 36), std::string(kCaller).substr(0, 36)) << "the caller's trace";
  EXPECT_THAT(decodes_[0]->headers("traceparent"), ElementsAre("", told));
  EXPECT_THAT(prefills_[0]->headers("traceparent"), ElementsAre("", told));
}

TEST_F(TracesTest, WhatTheCallerDoesNotSampleIsCarriedOnAsItCame) {
  StartReady();
  ExpectWhole(Generate(Request(5), {.headers = {{"traceparent", kUnsampled}}}), 5);
  EXPECT_TRUE(Traces().empty());
  EXPECT_EQ(decodes_[0]->headers("traceparent").back(), kUnsampled);
}

TEST_F(TracesTest, ARetryIsAnotherAttempt) {
  StartReady();
  prefills_[0]->Plan({.fail = Point::kBefore});
  ExpectWhole(Generate(Request(20)), 20);
  const Trace trace = Only();
  ExpectPhasesFill(trace);
  const auto attempts = Named(trace, "attempt");
  ASSERT_EQ(attempts.size(), 2u);
  EXPECT_TRUE(absl::IsUnavailable(attempts[0]->error)) << attempts[0]->error;
  EXPECT_TRUE(attempts[1]->error.ok());
  EXPECT_LE(attempts[0]->end, attempts[1]->begin);
}

TEST_F(TracesTest, AResumeIsAnotherAttemptWithinDecode) {
  StartReady();
  decodes_[0]->Plan({.lose_at = 5});
  ExpectWhole(Generate(Request(12)), 12);
  const Trace trace = Only();
  ExpectPhasesFill(trace);
  const auto attempts = Named(trace, "attempt");
  ASSERT_EQ(attempts.size(), 2u);
  EXPECT_TRUE(attempts[0]->error.ok()) << "decode held the KV when it was lost";
  EXPECT_GE(attempts[1]->begin, Named(trace, "decode")[0]->begin);
}

TEST_F(TracesTest, ARequestThatFailsLeavesOneThatSaysSo) {
  StartReady();
  for (int i = 0; i < 5; ++i) prefills_[0]->Plan({.fail = Point::kBefore});
  const test::Answer answer = Generate(Request(20));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  const Trace trace = Only();
  ExpectPhasesFill(trace);
  EXPECT_TRUE(absl::IsUnavailable(trace[0].error));
  EXPECT_EQ(Named(trace, "attempt").size(), 5u);
  EXPECT_TRUE(Named(trace, "decode").empty());
}

TEST_F(TracesTest, AFirstTokenThatEndsItEndsItsAttemptToo) {
  StartReady();
  ExpectWhole(Generate(Request(1)), 1);
  const Trace trace = Only();
  ASSERT_EQ(Named(trace, "attempt").size(), 1u);
  EXPECT_TRUE(Named(trace, "attempt")[0]->error.ok());
}

// Attributes name workers, counts and a label: no text of the prompt or the answer, and no ids.
TEST_F(TracesTest, NoTextOfTheClientIsInThem) {
  StartReady();
  setu::v1::GenerateRequest request;
  request.set_text("SECRET-PROMPT");
  request.mutable_sampling()->set_max_tokens(8);
  request.mutable_stopping()->add_strings("SECRET-STOP");
  const test::Answer answer = Generate(request, {.headers = {{"authorization", "SECRET-TOKEN"}}});
  EXPECT_TRUE(answer.status.ok());
  for (const tracing::Span& span : Only()) {
    for (const tracing::Attribute& attribute : span.attributes) {
      const std::string* text = std::get_if<std::string>(&attribute.value);
      if (text == nullptr) continue;
      EXPECT_EQ(text->find("SECRET"), std::string::npos) << attribute.key;
      EXPECT_EQ(text->find(workers_.Text(8)), std::string::npos) << attribute.key;
    }
  }
}

}  // namespace
}  // namespace setu::router
