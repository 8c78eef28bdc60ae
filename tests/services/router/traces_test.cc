// SPDX-License-Identifier: Apache-2.0
// Traces of requests through a router whose workers fail as they are told to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "tests/services/router/router_fixture.h"
#include "tests/services/router/tenants_fixture.h"
#include "tests/services/router/trace_keeper.h"

namespace setu::router {
namespace {

using Point = test::PrefillPlan::Point;
using Trace = TraceKeeper::Trace;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr char kCaller[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr char kUnsampled[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

class TracesTest : public RouterFixture {
 protected:
  void SetUp() override {
    RouterFixture::SetUp();
    options_.tracer = &traces_.tracer();
  }
  // A request's trace is there before the client hears of its end.
  Trace Only() {
    const std::vector<Trace> traces = traces_.all();
    EXPECT_EQ(traces.size(), 1u);
    return traces.empty() ? Trace(1) : traces[0];
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

  TraceKeeper traces_;
};

TEST_F(TracesTest, ARequestLeavesOneAndTheCanaryNone) {
  StartReady();
  EXPECT_TRUE(traces_.all().empty());
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
  EXPECT_TRUE(traces_.all().empty());
  EXPECT_EQ(decodes_[0]->headers("traceparent").back(), kUnsampled);
}

// Encoding a text takes a while.
class SlowTokenizer final : public ByteTokenizer {
 public:
  static constexpr auto kEach = std::chrono::milliseconds(7);

  explicit SlowTokenizer(testing::FakeClock& clock) : clock_(clock) {}
  absl::StatusOr<std::vector<TokenId>> EncodeRuns(std::span<const tokenizer::TextRun> runs,
                                                  bool add_special) const override {
    clock_.Advance(kEach);
    return ByteTokenizer::EncodeRuns(runs, add_special);
  }

 private:
  testing::FakeClock& clock_;
};

TEST_F(TracesTest, ARequestsTimeBeginsBeforeItsTextIsTokenised) {
  clock_ = &fake_;
  tokenizer_ = std::make_unique<SlowTokenizer>(fake_);
  StartReady();
  EXPECT_TRUE(Generate(test::GreedyText("abc", 3)).ok());
  EXPECT_EQ(Generate(test::GreedyText(std::string(600, 'a'), 3)).status.error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  const std::vector<Trace> traces = traces_.all();
  ASSERT_THAT(traces, ElementsAre(SizeIs(6), SizeIs(1)));
  EXPECT_EQ(Named(traces[0], "queue")[0]->end - traces[0][0].begin, SlowTokenizer::kEach);
  EXPECT_EQ(traces[1][0].end - traces[1][0].begin, SlowTokenizer::kEach);
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

class RefusedTracesTest : public TenantsFixture {
 protected:
  void SetUp() override {
    TenantsFixture::SetUp();
    options_.tracer = &traces_.tracer();
  }
  // One more trace, of the request alone, says so before the client hears of it.
  void ExpectTraced(const test::Answer& refused, grpc::StatusCode code) {
    EXPECT_EQ(refused.status.error_code(), code) << refused.Explain();
    const std::vector<Trace> traces = traces_.all();
    ASSERT_EQ(traces.size(), ++seen_) << refused.Explain();
    ASSERT_THAT(traces.back(), SizeIs(1));
    const tracing::Span& span = traces.back()[0];
    EXPECT_LE(span.begin, span.end);
    for (const tracing::Attribute& attribute : span.attributes) {
      if (std::string_view(attribute.key) != "rpc.grpc.status_code") continue;
      EXPECT_EQ(std::get<int64_t>(attribute.value), static_cast<int64_t>(code));
    }
  }

  TraceKeeper traces_;
  size_t seen_ = 0;  // traces
};

TEST_F(RefusedTracesTest, WhoeverRefusesARequestLeavesOneSpan) {
  options_.queue.capacity = 1;
  StartWithoutRoom();
  setu::v1::GenerateRequest elsewhere = Request(3);
  elsewhere.set_model("another");
  ExpectTraced(Generate(Request(3), As("mallory")), grpc::StatusCode::UNAUTHENTICATED);
  ExpectTraced(Generate(Request(0), As("alice")), grpc::StatusCode::INVALID_ARGUMENT);
  ExpectTraced(Generate(elsewhere, As("alice")), grpc::StatusCode::NOT_FOUND);
  std::future<test::Answer> waiting = GenerateAsync(Request(50), As("alice"));
  WaitQueued(1);
  for (int i = 0; i < 2; ++i) {  // the second before it is parsed
    ExpectTraced(Generate(Request(50), As("alice")), grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  SetFree(1024);
  ExpectWhole(waiting.get(), 50);
  ++seen_;  // its own
  decodes_[0]->Kill();
  WaitReady(false);
  ExpectTraced(Generate(Request(3), As("alice")), grpc::StatusCode::UNAVAILABLE);
  router_->BeginDrain();
  ExpectTraced(Generate(Request(3), As("alice")), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(RefusedTracesTest, AQuotaThatIsSpentLeavesOneSpan) {
  WriteTokens({{"alice", "alice"}}, {{"alice", "requests=1"}});
  StartWithoutRoom();
  std::future<test::Answer> waiting = GenerateAsync(Request(50), As("alice"));
  WaitQueued(1);
  ExpectTraced(Generate(Request(3), As("alice")), grpc::StatusCode::RESOURCE_EXHAUSTED);
  SetFree(1024);
  ExpectWhole(waiting.get(), 50);
}

TEST_F(RefusedTracesTest, ADeadlineThatPassesInTheQueueEndsItThere) {
  clock_ = &fake_;
  options_.workers.report_timeout = std::chrono::hours(1);  // reports come by the real clock
  options_.queue.queue_timeout = std::chrono::hours(1);
  StartWithoutRoom();
  const test::CallOptions call = As("alice");
  std::future<test::Answer> waiting = GenerateAsync(Request(50), call);
  WaitQueued(1);
  fake_.Advance(call.deadline);
  SetFree(1);  // the router looks at the clock
  EXPECT_EQ(waiting.get().status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  const std::vector<Trace> traces = traces_.all();
  ASSERT_THAT(traces, ElementsAre(SizeIs(2)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(traces[0][0].error)) << traces[0][0].error;
  EXPECT_STREQ(traces[0][1].name, "queue");
  EXPECT_EQ(traces[0][1].end, traces[0][0].end);
}

// Its trace is its caller's, who may not want it recorded, and its id what its metadata says.
TEST_F(RefusedTracesTest, ItsCallerKnowsItsSpan) {
  StartReady();
  test::CallOptions stranger = As("mallory", "r-7");
  stranger.headers["traceparent"] = kUnsampled;
  Generate(Request(3), stranger);
  EXPECT_THAT(traces_.all(), SizeIs(0));
  stranger.headers["traceparent"] = kCaller;
  ExpectTraced(Generate(Request(3), stranger), grpc::StatusCode::UNAUTHENTICATED);
  const std::vector<Trace> traces = traces_.all();
  ASSERT_THAT(traces, ElementsAre(SizeIs(1)));
  const tracing::Span& span = traces[0][0];
  EXPECT_EQ(tracing::Traceparent(span.context).substr(0, 36), std::string(kCaller).substr(0, 36));
  ASSERT_TRUE(span.parent.has_value());
  EXPECT_TRUE(span.parent->remote);
  EXPECT_EQ(std::get<std::string>(span.attributes.back().value), "r-7");
}

}  // namespace
}  // namespace setu::router
