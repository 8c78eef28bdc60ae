// SPDX-License-Identifier: Apache-2.0
// Tenants of one router: turns, places in the queue, quotas, and who is told at once that it is too
// late.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <variant>

#include "tests/services/router/tenants_fixture.h"
#include "tests/services/router/trace_keeper.h"

namespace setu::router {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FairnessTest : public TenantsFixture {
 protected:
  // From now on there is room, for one at a time.
  void ServeOneByOne() {
    worker::v1::WatchLoadResponse load = decodes_[0]->load();
    load.set_blocks_free(1024);
    load.set_running_max(1);
    decodes_[0]->Report(load);
  }
  // On the fake clock, for what is tried again after a while; no faster than the real one, by which
  // the router's threads run.
  void WaitQueuedWhileTimePasses(size_t length) {
    while (router_->snapshot().queue_length != length) {
      std::this_thread::sleep_for(milliseconds(1));
      fake_.Advance(milliseconds(1));
    }
  }
  void Queue(const std::string& name, int requests) {
    for (int i = 0; i < requests; ++i) {
      waiting_.push_back(GenerateAsync(Request(50), As(name, name)));
      WaitQueued(++queued_);
    }
  }
  void ExpectAllWhole() {
    for (auto& answer : waiting_) ExpectWhole(answer.get(), 50);
  }
  // Whose requests had their turns, in order, after the canary.
  std::vector<std::string> Turns() {
    std::vector<std::string> turns = decodes_[0]->headers("x-request-id");
    turns.erase(turns.begin());
    return turns;
  }
  void ExpectRefused(const test::Answer& answer, const std::string& why) {
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(answer.status.error_message(), HasSubstr(why));
    EXPECT_TRUE(answer.trailers.contains("grpc-retry-pushback-ms"));
    EXPECT_EQ(answer.LastIndex(), "-1");
  }

  // The request alone, and how it ended.
  static bool IsOfARefusal(const TraceKeeper::Trace& trace) {
    return trace.size() == 1 &&
           std::ranges::any_of(trace[0].attributes, [](const tracing::Attribute& attribute) {
             return std::string_view(attribute.key) == "rpc.grpc.status_code" &&
                    std::get<int64_t>(attribute.value) == grpc::StatusCode::RESOURCE_EXHAUSTED;
           });
  }

  TraceKeeper traces_;
  std::vector<std::future<test::Answer>> waiting_;
  size_t queued_ = 0;
};

TEST_F(FairnessTest, WhoComesBehindAFloodHasEverySecondTurn) {
  StartWithoutRoom();
  Queue("alice", 20);
  Queue("bob", 3);
  ServeOneByOne();
  ExpectAllWhole();
  std::vector<std::string> turns = Turns();
  ASSERT_EQ(turns.size(), 23u);
  turns.resize(7);
  EXPECT_THAT(turns, ElementsAre("alice", "bob", "alice", "bob", "alice", "bob", "alice"));
}

TEST_F(FairnessTest, WeightsAndPrioritiesOfTheFileCount) {
  WriteTokens({{"alice", "alice"}, {"bob", "bob"}, {"urgent", "alice, high"}},
              {{"bob", "weight=2"}});
  StartWithoutRoom();
  Queue("alice", 3);
  Queue("bob", 4);
  Queue("urgent", 1);
  ServeOneByOne();
  ExpectAllWhole();
  EXPECT_THAT(Turns(),
              ElementsAre("urgent", "alice", "bob", "bob", "alice", "bob", "bob", "alice"));
}

// An answer that is shorter than was expected leaves the rest to its tenant.
TEST_F(FairnessTest, WorkThatWasNotDoneIsGivenBack) {
  workers_.EndAt(3, ByteTokenizer::kEnd);
  StartWithoutRoom();
  waiting_.push_back(GenerateAsync(Request(200), As("alice", "alice")));
  WaitQueued(++queued_);
  Queue("alice", 1);
  Queue("bob", 3);
  ServeOneByOne();
  for (auto& answer : waiting_) EXPECT_TRUE(answer.get().ok());
  EXPECT_THAT(Turns(), ElementsAre("alice", "bob", "alice", "bob", "bob"));
}

TEST_F(FairnessTest, AFloodGivesUpItsNewestPlacesToOthers) {
  options_.queue.capacity = 3;
  StartWithoutRoom();
  Queue("alice", 3);
  ExpectRefused(Generate(Request(50), As("alice")), "the queue is full");
  ExpectRefused(Generate(Request(50), As("alice")), "the queue is full");
  EXPECT_EQ(router_->snapshot().refused_full, 2u);
  std::future<test::Answer> bobs = GenerateAsync(Request(50), As("bob"));
  ExpectRefused(waiting_[2].get(), "others hold fewer places in it; retry");
  waiting_.pop_back();
  EXPECT_EQ(router_->snapshot().failed, 1u);
  ServeOneByOne();
  ExpectWhole(bobs.get(), 50);
  ExpectAllWhole();
}

TEST_F(FairnessTest, RequestsAtOnceAreATenantsQuota) {
  WriteTokens({{"alice", "alice"}, {"alias", "alice"}, {"bob", "bob"}}, {{"alice", "requests=1"}});
  StartWithoutRoom();
  Queue("alice", 1);
  ExpectRefused(Generate(Request(3), As("alias")), "quota: 1 requests of this tenant");
  EXPECT_EQ(router_->snapshot().refused_quota, 1u);
  EXPECT_TRUE(logger_.lines("overloaded").empty()) << "one tenant's quota is no overload";
  SetFree(1024);
  ExpectWhole(Generate(Request(3), As("bob")), 3);
  ExpectAllWhole();
  ExpectWhole(Generate(Request(3), As("alias")), 3);
}

TEST_F(FairnessTest, TokensAMinuteAreATenantsQuotaByWhatWasGenerated) {
  WriteTokens({{"alice", "alice"}, {"bob", "bob"}}, {{"alice", "tokens-per-minute=60"}});
  workers_.EndAt(3, ByteTokenizer::kEnd);
  clock_ = &fake_;
  StartReady();
  // 3 of prompt and 4 of answer each, though 100 may come.
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(Generate(Request(100), As("alice")).ok()) << i;
  WaitUntil([](const RouterSnapshot& now) { return now.finished == 9; });
  const test::Answer refused = Generate(Request(100), As("alice"));
  ExpectRefused(refused, "has spent its 60 tokens a minute");
  EXPECT_EQ(refused.trailers.find("grpc-retry-pushback-ms")->second, "4000")
      << "3 too many, and one to spend";
  EXPECT_TRUE(Generate(Request(100), As("bob")).ok());
  const Caller alice = *callers_->Identify("alice-token");
  EXPECT_FALSE(Visit::Enter(alice, fake_.Now() + seconds(3)).ok());
  EXPECT_TRUE(Visit::Enter(alice, fake_.Now() + seconds(4)).ok());
}

// So the other never waits for more than one prompt, once it has its turn.
TEST_F(FairnessTest, WhereTenantsShareAPrefillWorkerItHasOnePromptAtATime) {
  StartReady();
  const v1::GenerateRequest tenth =  // of a second, where no rate is known
      test::GreedyRequest(std::vector<uint32_t>(100, 1), 50);
  const auto hang = [&](grpc::ClientContext& context) {
    prefills_[0]->Plan({.hang = test::PrefillPlan::Point::kBefore});
    context.AddMetadata("authorization", "Bearer alice-token");
    auto stream = stub_->Generate(&context, tenth);
    WaitUntil([&](const RouterSnapshot&) { return prefills_[0]->open_calls() == 1; });
    return stream;
  };
  const auto end = [](grpc::ClientContext& context, grpc::ClientReader<v1::GenerateResponse>& s) {
    context.TryCancel();
    EXPECT_EQ(s.Finish().error_code(), grpc::StatusCode::CANCELLED);
  };
  grpc::ClientContext alone, shared;
  const auto first = hang(alone);
  ExpectWhole(Generate(Request(50), As("alice")), 50);
  end(alone, *first);
  ExpectWhole(Generate(Request(50), As("bob")), 50);
  const auto second = hang(shared);
  Queue("alice", 1);
  EXPECT_EQ(prefills_[0]->open_calls(), 1);
  end(shared, *second);
  ExpectAllWhole();
}

// One has a turn each ten seconds, and two wait.
TEST_F(FairnessTest, WhoseDeadlineComesBeforeItsTurnIsToldAtOnce) {
  clock_ = &fake_;
  options_.workers.report_timeout = hours(1);  // reports come by the real clock
  options_.flow.silence = hours(1);
  options_.queue.queue_timeout = hours(1);
  options_.tracer = &traces_.tracer();
  StartWithoutRoom();
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>>> streams;
  for (int i = 0; i < 6; ++i) {
    decodes_[0]->Plan({.hang_at = 2});
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    contexts.back()->AddMetadata("authorization", "Bearer alice-token");
    streams.push_back(stub_->Generate(contexts.back().get(), Request(50)));
    WaitQueued(static_cast<size_t>(i) + 1);
  }
  ServeOneByOne();
  for (int i = 0; i < 4; ++i) {
    WaitQueuedWhileTimePasses(static_cast<size_t>(5 - i));
    fake_.Advance(seconds(10));
    contexts[static_cast<size_t>(i)]->TryCancel();
  }
  WaitQueuedWhileTimePasses(1);
  test::CallOptions soon = As("alice");
  soon.deadline = seconds(9);
  ExpectRefused(Generate(Request(50), soon), "retry after the delay given, or allow more time");
  EXPECT_EQ(router_->snapshot().refused_late, 1u);
  EXPECT_EQ(std::ranges::count_if(traces_.all(), IsOfARefusal), 1);
  std::future<test::Answer> patient = GenerateAsync(Request(50), As("alice"));
  WaitQueued(2);
  for (size_t i = 4; i < 6; ++i) {  // one has its turn, and hangs, before the next is cancelled
    contexts[i]->TryCancel();
    WaitQueuedWhileTimePasses(5 - i);
  }
  ExpectWhole(patient.get(), 50);
  for (auto& stream : streams) {
    for (v1::GenerateResponse response; stream->Read(&response);) continue;
    EXPECT_FALSE(stream->Finish().ok());
  }
}

}  // namespace
}  // namespace setu::router
