// SPDX-License-Identifier: Apache-2.0
#include "services/router/overload_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/fake_clock.h"
#include "tests/support/keeping_logger.h"
#include "tests/support/loop_thread.h"

namespace setu::router {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

class OverloadLogTest : public ::testing::Test {
 protected:
  void TearDown() override {
    owner_.Do([&] { log_ = nullptr; });
  }
  void Refuse(int times) {
    owner_.Do([&] {
      for (int i = 0; i < times; ++i) log_->Refused("the queue is full");
    });
  }
  // Timers that are due run in the loop's turn after this.
  void Advance(Duration by) {
    clock_.Advance(by);
    owner_.Do([] {});
    owner_.Do([] {});
  }

  testing::FakeClock clock_;
  test::KeepingLogger logger_;
  testing::LoopThread owner_{clock_};
  std::unique_ptr<OverloadLog> log_ =
      owner_.Do([&] { return std::make_unique<OverloadLog>(owner_.loop, logger_); });
};

TEST_F(OverloadLogTest, TellsOfItsBeginningAndItsEndHoweverManyAreRefused) {
  for (int second = 0; second < 60; ++second) {
    Refuse(1000);
    Advance(seconds(1));
  }
  EXPECT_THAT(logger_.lines(), ElementsAre("W overloaded: prompts are refused: the queue is full"));
  Advance(OverloadLog::kQuiet - seconds(1));
  EXPECT_THAT(logger_.lines(),
              ElementsAre("W overloaded: prompts are refused: the queue is full",
                          "I no longer overloaded: 60000 prompts were refused in 59 s"));
  Advance(std::chrono::hours(1));
  EXPECT_EQ(logger_.lines().size(), 2u);
}

TEST_F(OverloadLogTest, TheNextOneIsAnother) {
  Refuse(1);
  Advance(OverloadLog::kQuiet);
  Refuse(2);
  Advance(OverloadLog::kQuiet);
  EXPECT_THAT(logger_.lines(),
              ElementsAre("W overloaded: prompts are refused: the queue is full",
                          "I no longer overloaded: 1 prompts were refused in 0 s",
                          "W overloaded: prompts are refused: the queue is full",
                          "I no longer overloaded: 2 prompts were refused in 0 s"));
}

}  // namespace
}  // namespace setu::router
