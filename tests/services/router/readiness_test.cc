// SPDX-License-Identifier: Apache-2.0
#include "services/router/readiness.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace setu::router {
namespace {

class ReadinessTest : public ::testing::Test {
 protected:
  testing::FakeClock clock_;
  rpc::EventLoop loop_{clock_, 16};
  int canaries_ = 0;
  int changes_ = 0;
  Readiness readiness_{loop_, [this] { ++canaries_; }, [this](bool) { ++changes_; }};
};

TEST_F(ReadinessTest, ATokenProvesItUntilTheLastPairIsLost) {
  readiness_.PairsChanged(true);
  EXPECT_EQ(canaries_, 1);
  EXPECT_FALSE(readiness_.ready());
  readiness_.TokenCame(readiness_.spell());
  EXPECT_TRUE(readiness_.ready());
  readiness_.CanaryEnded();
  readiness_.PairsChanged(true);
  EXPECT_TRUE(readiness_.ready());
  EXPECT_EQ(canaries_, 1) << "nothing is left to prove";
  readiness_.PairsChanged(false);
  EXPECT_FALSE(readiness_.ready());
  EXPECT_EQ(changes_, 2);
  readiness_.PairsChanged(true);
  EXPECT_EQ(canaries_, 2);
}

TEST_F(ReadinessTest, ATokenOfARequestFromBeforeTheLossProvesNothing) {
  readiness_.PairsChanged(true);
  const Readiness::Spell before = readiness_.spell();
  readiness_.PairsChanged(false);
  readiness_.TokenCame(before);
  EXPECT_FALSE(readiness_.ready()) << "there is no pair";
  readiness_.PairsChanged(true);
  readiness_.TokenCame(before);
  EXPECT_FALSE(readiness_.ready()) << "its workers were others";
  readiness_.TokenCame(readiness_.spell());
  EXPECT_TRUE(readiness_.ready());
}

}  // namespace
}  // namespace setu::router
