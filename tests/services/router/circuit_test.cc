// SPDX-License-Identifier: Apache-2.0
#include "services/router/circuit.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

namespace setu::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = Circuit::State;

class CircuitTest : public ::testing::Test {
 protected:
  static std::shared_ptr<Circuit> Make(uint64_t seed) {
    return std::make_shared<Circuit>(Circuit::Times{.first = seconds(1), .longest = seconds(8)},
                                     seed);
  }
  // As who places: nullopt where nobody may try.
  std::optional<Trial> Try() {
    if (!circuit_->Admits(now_)) return std::nullopt;
    return Trial(circuit_);
  }
  void Fail() { EXPECT_TRUE(Try()->Failed(now_)); }
  void Wait() { now_ = circuit_->half_open_at(); }
  Duration OpenFor() const { return circuit_->half_open_at() - now_; }

  const std::shared_ptr<Circuit> circuit_ = Make(1);
  TimePoint now_ = TimePoint(seconds(100));
};

TEST_F(CircuitTest, ClosedAdmitsAllAndOneFailureOpensIt) {
  Trial first = *Try(), second = *Try();
  EXPECT_EQ(circuit_->state(now_), State::kClosed);
  EXPECT_FALSE(first.Worked()) << "it was closed before";
  EXPECT_TRUE(second.Failed(now_));
  EXPECT_EQ(circuit_->state(now_), State::kOpen);
  EXPECT_FALSE(Try());
  Wait();
  EXPECT_EQ(circuit_->state(now_), State::kHalfOpen);
}

TEST_F(CircuitTest, HalfOpenAdmitsOneProbeAtATime) {
  Fail();
  Wait();
  std::optional<Trial> probe = Try();
  ASSERT_TRUE(probe);
  EXPECT_EQ(circuit_->probes(), 1);
  EXPECT_FALSE(Try());
  now_ += seconds(60);
  EXPECT_FALSE(Try()) << "however long it takes";
  probe.reset();
  EXPECT_TRUE(Try()) << "it has taught nothing";
  EXPECT_EQ(circuit_->probes(), 0);
}

TEST_F(CircuitTest, AProbeThatWorksClosesIt) {
  Fail();
  Wait();
  Trial probe = *Try();
  EXPECT_TRUE(probe.Worked());
  EXPECT_EQ(circuit_->state(now_), State::kClosed);
  EXPECT_FALSE(probe.Worked());
  EXPECT_TRUE(Try());
  EXPECT_TRUE(probe.Failed(now_)) << "it may fail later";
  EXPECT_EQ(circuit_->state(now_), State::kOpen);
  EXPECT_LE(OpenFor(), seconds(1)) << "as for the first time";
}

TEST_F(CircuitTest, EachProbeThatFailsOpensItLongerUpToABound) {
  Fail();
  for (const Duration longest : {seconds(1), seconds(2), seconds(4), seconds(8), seconds(8)}) {
    EXPECT_GE(OpenFor(), longest / 2);
    EXPECT_LE(OpenFor(), longest);
    Wait();
    Fail();
  }
}

TEST_F(CircuitTest, OfTriesThatBeganBeforeItOpenedNothingIsLearnt) {
  Trial a = *Try(), b = *Try(), c = *Try();
  Fail();
  const TimePoint half_open = circuit_->half_open_at();
  EXPECT_FALSE(a.Failed(now_)) << "of one worker that dies many tries fail";
  EXPECT_EQ(circuit_->half_open_at(), half_open);
  EXPECT_FALSE(b.Worked());
  EXPECT_EQ(circuit_->state(now_), State::kOpen);
  Wait();
  EXPECT_TRUE(Try()->Worked());
  EXPECT_FALSE(c.Failed(now_));
  EXPECT_EQ(circuit_->state(now_), State::kClosed);
}

TEST_F(CircuitTest, AProbeThatMovesIsStillOne) {
  Fail();
  Wait();
  Trial held;
  held = *Try();
  EXPECT_EQ(circuit_->probes(), 1);
  held = Trial();
  EXPECT_EQ(circuit_->probes(), 0);
}

TEST_F(CircuitTest, ChanceSetsCircuitsApart) {
  std::set<TimePoint> ends;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::shared_ptr<Circuit> circuit = Make(seed << 33), again = Make(seed << 33);
    EXPECT_TRUE(Trial(circuit).Failed(now_));
    EXPECT_TRUE(Trial(again).Failed(now_));
    EXPECT_EQ(circuit->half_open_at(), again->half_open_at());
    ends.insert(circuit->half_open_at());
  }
  EXPECT_GE(ends.size(), 18u);
}

TEST_F(CircuitTest, NothingGuardsWhatHasNone) {
  Trial none;
  EXPECT_FALSE(none.Worked());
  EXPECT_FALSE(none.Failed(now_));
}

}  // namespace
}  // namespace setu::router
