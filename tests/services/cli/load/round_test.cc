// SPDX-License-Identifier: Apache-2.0
// The generator against a router whose answers wait for each other: what would hang if it did.
#include "services/cli/load/round.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "tests/services/cli/load/waiting_router.h"
#include "tests/support/wait_until.h"

namespace setu::cli {
namespace {

constexpr uint32_t kVocabulary[] = {3, 5, 7, 11};
constexpr std::chrono::seconds kLimit(20);

// No answer may take longer: what waits for ever fails, and does not hang.
Workload Make(const ArrivalProcess& arrivals, int64_t requests,
              const std::function<void(WorkloadFlags&)>& change = {}) {
  WorkloadFlags flags;
  flags.prompt_tokens = "4";
  flags.max_tokens = "2";
  flags.deadline = kLimit;
  if (change) change(flags);
  Workload workload = *MakeWorkload("w", flags);
  workload.arrivals = arrivals;
  workload.requests = requests;
  return workload;
}

struct Ran {
  std::vector<Tally> tallies;
  int ended = 0;
  int64_t Of(const std::string& status) const {
    const auto found = tallies[0].by_status.find(status);
    return found == tallies[0].by_status.end() ? 0 : found->second.count();
  }
};

Ran RunAt(test::WaitingRouter& router, const std::vector<Workload>& workloads,
          int64_t most_open = 10'000, int connections = 1, const std::stop_token& stop = {}) {
  LoadClient client(router.address(), connections);
  client.WaitConnected(kLimit);
  Ran ran;
  ran.tallies = RunRound(client, workloads,
                         {.seed = 1,
                          .number = 0,
                          .side = 0,
                          .vocabulary = kVocabulary,
                          .most_open = most_open,
                          .timeline_start = SteadyClock().Now(),
                          .on_end = [&ran] { ++ran.ended; }},
                         stop);
  return ran;
}

TEST(Round, HoldsThousandsOfStreamsAtOnce) {
  constexpr int kStreams = 3000;
  test::WaitingRouter router(kStreams);
  const int connections = LoadClient::ConnectionsFor(kStreams);
  const Ran ran = RunAt(router, {Make(Closed{kStreams}, kStreams)}, kStreams, connections);
  EXPECT_EQ(ran.Of(kOk), kStreams);
  EXPECT_EQ(ran.ended, kStreams);
  EXPECT_EQ(ran.tallies[0].generated_tokens, 2 * kStreams);
  EXPECT_EQ(router.most_open(), size_t{kStreams});
  EXPECT_EQ(connections, 3);
  EXPECT_EQ(router.connections(), 3u);
}

TEST(Round, OpenArrivalsWaitForNoAnswer) {
  test::WaitingRouter router(20);
  const Ran ran = RunAt(router, {Make(Fixed{1000}, 20)});
  EXPECT_EQ(ran.Of(kOk), 20);
  EXPECT_EQ(router.most_open(), 20u);
}

TEST(Round, AClosedLoopHasAsManyOpenAsClients) {
  test::WaitingRouter router(1);
  const Ran ran = RunAt(router, {Make(Closed{4}, 40)});
  EXPECT_EQ(ran.Of(kOk), 40);
  EXPECT_LE(router.most_open(), 4u);
}

TEST(Round, ALockstepAsksTogether) {
  test::WaitingRouter router(3);
  EXPECT_EQ(RunAt(router, {Make(Lockstep{3}, 9)}).Of(kOk), 9);
}

TEST(Round, WorkloadsRunAtTheSameTime) {
  test::WaitingRouter router(5);
  const Ran ran = RunAt(router, {Make(Closed{2}, 2), Make(Fixed{1000}, 3)});
  ASSERT_EQ(ran.tallies.size(), 2u);
  EXPECT_EQ(ran.tallies[0].answered(), 2);
  EXPECT_EQ(ran.tallies[1].answered(), 3);
}

TEST(Round, CancelsAsPlanned) {
  test::WaitingRouter router(1);
  router.silent_after = 3;
  const Ran ran = RunAt(router, {Make(Closed{2}, 6, [](WorkloadFlags& flags) {
                          flags.max_tokens = "1000";
                          flags.cancel_share = 1;
                          flags.cancel_after = "3";
                        })});
  EXPECT_EQ(ran.Of(kCancelledByPlan), 6);
  EXPECT_EQ(ran.tallies[0].generated_tokens, 18);
  EXPECT_TRUE(test::WaitUntil(kLimit, [&] { return router.cancelled() == 6; }));
}

TEST(Round, ArrivalsBeyondItsBoundAreNotSent) {
  test::WaitingRouter router(2);
  const Ran ran = RunAt(router, {Make(Bursts{.rate = 1, .size = 5}, 5)}, /*most_open=*/2);
  EXPECT_EQ(ran.Of(kOk), 2);
  EXPECT_EQ(ran.Of(kNotSent), 3);
  EXPECT_EQ(router.requests().size(), 2u);
}

TEST(Round, AStopBreaksOffWhatIsOpenAndStartsNoMore) {
  test::WaitingRouter router(1000);
  std::stop_source stop;
  std::atomic<size_t> came = 0;
  router.on_request = [&] {
    if (++came == 5) stop.request_stop();
  };
  const Ran ran =
      RunAt(router, {Make(Closed{5}, 100), Make(Fixed{0.001}, 9)}, 10, 1, stop.get_token());
  EXPECT_EQ(ran.tallies[0].ended(), 0);
  EXPECT_LE(router.requests().size(), 6u);
  EXPECT_TRUE(test::WaitUntil(kLimit, [&] { return router.cancelled() == came; }));
}

TEST(Round, ADeadlineEndsARequest) {
  test::WaitingRouter router(1000);
  const Ran ran = RunAt(router, {Make(Closed{2}, 2, [](WorkloadFlags& flags) {
                          flags.deadline = std::chrono::milliseconds(50);
                        })});
  EXPECT_EQ(ran.Of("DEADLINE_EXCEEDED"), 2);
  EXPECT_NE(ran.tallies[0].first_error.at("DEADLINE_EXCEEDED"), "");
}

TEST(Round, CountsWhatCachesHadAndCouldHaveHad) {
  test::WaitingRouter router(1);
  const Ran ran = RunAt(router, {Make(Closed{1}, 10, [](WorkloadFlags& flags) {
                          flags.prefixes = 2;
                          flags.prefix_tokens = 6;
                        })});
  EXPECT_EQ(ran.tallies[0].prompt_tokens, 100);
  EXPECT_EQ(ran.tallies[0].cached_tokens, 10 * test::WaitingRouter::kCachedTokens);
  EXPECT_EQ(ran.tallies[0].reusable_tokens, 8 * 6) << "each prefix is new once";
}

TEST(Round, SendsWhatIsPlanned) {
  test::WaitingRouter router(1);
  const Workload workload = Make(Closed{1}, 5);
  RunAt(router, {workload});
  const Plan plan(workload, SeedsOf(1, 0, 0, 0));
  const std::vector<v1::GenerateRequest> sent = router.requests();
  ASSERT_EQ(sent.size(), 5u);
  for (size_t i = 0; i < sent.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const std::vector<uint32_t> ids(sent[i].token_ids().ids().begin(),
                                    sent[i].token_ids().ids().end());
    EXPECT_EQ(ids, plan.Prompt(index, plan.Request(index), kVocabulary));
    EXPECT_EQ(sent[i].sampling().max_tokens(), 2u);
    EXPECT_TRUE(sent[i].stopping().ignore_eos());
  }
}

}  // namespace
}  // namespace setu::cli
