// SPDX-License-Identifier: Apache-2.0
// Who gets work after a failure, seen from outside: a router in front of workers that fail.
#include "services/router/worker_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/services/router/router_fixture.h"

namespace setu::router {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Point = test::PrefillPlan::Point;

const grpc::Status kBroken(grpc::StatusCode::INTERNAL, "broken");

// A circuit that opens stays open.
class WorkerHealthTest : public RouterFixture {
 protected:
  void SetUp() override {
    RouterFixture::SetUp();
    StayOpen();
  }
  void StayOpen() {
    options_.workers.circuit = {.first = std::chrono::hours(1), .longest = std::chrono::hours(1)};
  }
  void ExpectOpened(uint64_t prefill, uint64_t decode, uint64_t pair) {
    const CircuitsOpened opened = router_->snapshot().circuits_opened;
    EXPECT_EQ(opened.prefill, prefill);
    EXPECT_EQ(opened.decode, decode);
    EXPECT_EQ(opened.pair, pair);
  }
  std::vector<Circuit::State> Circuits() {
    std::promise<std::vector<Circuit::State>> states;
    EXPECT_TRUE(router_->LookAtWorkers([&](const auto& workers) {
      std::vector<Circuit::State> out;
      for (const WorkerDirectory::Listing& listing : workers) out.push_back(listing.circuit);
      states.set_value(std::move(out));
    }));
    return states.get_future().get();
  }
  int StreamsOf(const std::string& decode, const test::FakePrefill& prefill) {
    int count = 0;
    for (const auto& request : prefill.requests()) count += request.decode_address() == decode;
    return count;
  }
};

TEST_F(WorkerHealthTest, ADecodeWorkerThatFailedGetsNothing) {
  Decode();
  StartReady();
  for (auto* decode : decodes_) decode->Plan({.refuse = kBroken});
  // Whichever comes first fails; no third one is there once the other has failed too.
  std::future<test::Answer> answer =
      GenerateAsync(Request(5), {.deadline = std::chrono::seconds(1)});
  EXPECT_FALSE(answer.get().ok());
  ExpectOpened(0, 2, 0);
  EXPECT_THAT(Circuits(), ::testing::ElementsAre(Circuit::State::kClosed, Circuit::State::kOpen,
                                                 Circuit::State::kOpen));
  EXPECT_THAT(logger_.lines(),
              Contains(::testing::AllOf(HasSubstr("W decode worker decode-0 failed"),
                                        HasSubstr("INTERNAL: broken"))));
}

TEST_F(WorkerHealthTest, APrefillWorkerThatFailedIsPassedOver) {
  Prefill();
  StartReady();
  prefills_[0]->Plan({.fail = Point::kBefore});
  prefills_[1]->Plan({.fail = Point::kNever});
  const int before = prefills_[0]->calls();
  for (int i = 0; i < 8; ++i) ExpectWhole(Generate(Request(5)), 5);
  EXPECT_LE(prefills_[0]->calls(), before + 1);
  EXPECT_LE(router_->snapshot().retries, 1u);
}

TEST_F(WorkerHealthTest, AProbeThatWorksBringsItBack) {
  options_.workers.circuit = {};
  options_.workers.circuit.first = std::chrono::milliseconds(1);
  StartReady();
  decodes_[0]->Plan({.refuse = kBroken});
  prefills_[0]->Plan({.fail = Point::kBefore});
  ExpectWhole(Generate(Request(5)), 5);
  ExpectOpened(1, 1, 0);
  EXPECT_THAT(Circuits(), ::testing::Each(Circuit::State::kClosed));
  EXPECT_THAT(logger_.lines(), Contains(HasSubstr("I decode worker decode-0 works again")));
  EXPECT_THAT(logger_.lines(), Contains(HasSubstr("I prefill worker prefill-0 works again")));
}

// The answer may be whole before the prefill worker's own word comes.
TEST_F(WorkerHealthTest, KvThatArrivedProvesThePrefillWorker) {
  options_.workers.circuit = {};
  options_.workers.circuit.first = std::chrono::milliseconds(1);
  StartReady();
  prefills_[0]->Plan({.fail = Point::kBefore});
  prefills_[0]->Plan({.mute = true});
  ExpectWhole(Generate(Request(5)), 5);
  ExpectOpened(1, 0, 0);
  EXPECT_THAT(Circuits(), ::testing::Each(Circuit::State::kClosed));
}

TEST_F(WorkerHealthTest, WhatIsNoFailureOfTheirsOpensNothing) {
  StartReady();
  decodes_[0]->Plan({.refuse = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "no room")});
  ExpectWhole(Generate(Request(5)), 5);
  prefills_[0]->Plan(
      {.fail = Point::kBefore, .fail_with = {grpc::StatusCode::RESOURCE_EXHAUSTED, "inbox full"}});
  ExpectWhole(Generate(Request(5)), 5);
  decodes_[0]->Plan({.refuse = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "900 over 800")});
  EXPECT_FALSE(Generate(Request(5)).ok());
  decodes_[0]->Plan({.lose_at = 3, .lose_with = {grpc::StatusCode::ABORTED, "reader stalled"}});
  EXPECT_FALSE(Generate(Request(5)).ok());
  decodes_[0]->Plan({.preempt_at = 2});
  ExpectWhole(Generate(Request(5)), 5);
  ExpectOpened(0, 0, 0);
  EXPECT_THAT(Circuits(), ::testing::Each(Circuit::State::kClosed));
}

// The prefill worker reaches one decode worker and not the other; the router reaches all.
TEST_F(WorkerHealthTest, APairThatIsCutIsLeftAndBothGoOn) {
  Decode();
  StartReady();
  prefills_[0]->CutOff("decode-0");
  const int before = StreamsOf("decode-0", *prefills_[0]);
  for (int i = 0; i < 12; ++i) ExpectWhole(Generate(Request(5)), 5);
  EXPECT_EQ(StreamsOf("decode-0", *prefills_[0]), before + 1);
  ExpectOpened(0, 0, 1);
  EXPECT_THAT(Circuits(), ::testing::Each(Circuit::State::kClosed)) << "each by itself is well";
  EXPECT_THAT(
      logger_.lines(),
      Contains(HasSubstr("W prefill worker prefill-0 does not reach decode worker decode-0")));
}

TEST_F(WorkerHealthTest, OfTwoPrefillWorkersTheOneThatReachesItServes) {
  Prefill();
  StartReady();
  prefills_[0]->CutOff("decode-0");
  for (int i = 0; i < 8; ++i) ExpectWhole(Generate(Request(5)), 5);
  const CircuitsOpened opened = router_->snapshot().circuits_opened;
  EXPECT_EQ(opened.prefill + opened.decode, 0u);
  EXPECT_LE(opened.pair, 1u);
}

TEST_F(WorkerHealthTest, AnOnlyPairIsUsedAgainOnceItsWayIsThere) {
  options_.workers.circuit.first = std::chrono::milliseconds(1);
  options_.workers.circuit.longest = std::chrono::milliseconds(1);
  StartReady();
  prefills_[0]->CutOff("decode-0");
  const int before = prefills_[0]->calls();
  std::future<test::Answer> answer = GenerateAsync(Request(5, 2));
  prefills_[0]->WaitCalls(before + 2);
  prefills_[0]->Reconnect();
  ExpectWhole(answer.get(), 5, 2);
  EXPECT_GE(router_->snapshot().circuits_opened.pair, 1u);
  ExpectWhole(Generate(Request(5)), 5);
  EXPECT_THAT(logger_.lines(),
              Contains(HasSubstr("I prefill worker prefill-0 reaches decode worker decode-0")));
}

}  // namespace
}  // namespace setu::router
