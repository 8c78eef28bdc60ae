// SPDX-License-Identifier: Apache-2.0
#include "common/base/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>

namespace setu {
namespace {

TEST(StopSignalsTest, TellsEachSignalOnceAndSurvivesIt) {
  StopSignals signals;
  EXPECT_FALSE(signals.WaitFor(Duration::zero()));
  for (int signal : {SIGTERM, SIGINT}) {
    raise(signal);
    EXPECT_TRUE(signals.WaitFor(std::chrono::seconds(10)));
    EXPECT_FALSE(signals.WaitFor(std::chrono::milliseconds(1)));
  }
}

}  // namespace
}  // namespace setu
