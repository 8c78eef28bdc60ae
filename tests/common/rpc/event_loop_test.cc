// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/event_loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/fake_clock.h"
#include "tests/support/loop_thread.h"

namespace setu::rpc {
namespace {

using std::chrono::seconds;
using testing::FakeClock;
using testing::LoopThread;

TEST(EventLoopTest, RunsWhatWasPostedInOrderUntilStopped) {
  SteadyClock clock;
  EventLoop loop(clock, 8);
  std::vector<int> ran;
  EXPECT_TRUE(loop.Post([&] { ran.push_back(1); }));
  loop.PostCompletion([&] { ran.push_back(2); });
  loop.Stop();
  loop.Run();
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
}

TEST(EventLoopTest, RefusesTheOutsideButNotCompletionsWhenFull) {
  SteadyClock clock;
  EventLoop loop(clock, 2);
  int ran = 0;
  EXPECT_TRUE(loop.Post([&] { ++ran; }));
  EXPECT_TRUE(loop.Post([&] { ++ran; }));
  EXPECT_FALSE(loop.Post([&] { ++ran; }));
  loop.PostCompletion([&] { ++ran; });
  loop.Stop();
  loop.Run();
  EXPECT_EQ(ran, 3);
}

TEST(EventLoopTest, IsTurnedByItsOwnerWithoutAWait) {
  FakeClock clock;
  EventLoop loop(clock, 8);
  EXPECT_FALSE(loop.Turn());
  EXPECT_EQ(loop.next_timer(), std::nullopt);
  std::vector<int> ran;
  const TimePoint due = clock.Now() + seconds(1);
  loop.At(due, [&] { ran.push_back(2); });
  loop.PostCompletion([&] { ran.push_back(1); });
  EXPECT_TRUE(loop.Turn());
  EXPECT_EQ(ran, (std::vector<int>{1}));
  EXPECT_EQ(loop.next_timer(), due);
  EXPECT_FALSE(loop.Turn()) << "the timer is not due";
  clock.Advance(seconds(1));
  EXPECT_TRUE(loop.Turn());
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
}

TEST(EventLoopTest, RunsTimersByTheirClockInOrderOfTime) {
  FakeClock clock;
  LoopThread owner(clock);
  std::vector<int> ran;
  owner.Do([&] {
    owner.loop.At(clock.Now() + seconds(20), [&] { ran.push_back(20); });
    owner.loop.At(clock.Now() + seconds(10), [&] { ran.push_back(10); });
    EventLoop::Timer cancelled =
        owner.loop.At(clock.Now() + seconds(15), [&] { ran.push_back(15); });
    owner.loop.Cancel(cancelled);
  });
  clock.Advance(seconds(19));
  owner.Do([] {});  // the hands were turned: look at them
  owner.Do([&] { EXPECT_EQ(ran, (std::vector<int>{10})); });
  clock.Advance(seconds(1));
  owner.Do([] {});
  owner.Do([&] { EXPECT_EQ(ran, (std::vector<int>{10, 20})); });
}

TEST(EventLoopTest, TimersFireWithNothingArriving) {
  SteadyClock clock;
  EventLoop loop(clock, 8);
  bool fired = false;
  loop.At(clock.Now() + std::chrono::milliseconds(1), [&] {
    fired = true;
    loop.Stop();
  });
  loop.Run();
  EXPECT_TRUE(fired);
}

TEST(EventLoopTest, OutlastsTheCallsItStarted) {
  SteadyClock clock;
  LoopThread owner(clock);
  bool released = false;
  owner.Do([&] { owner.loop.Hold(); });
  owner.loop.Stop();
  owner.Do([&] {  // still running
    released = true;
    owner.loop.Release();
  });
  owner.Stop();
  EXPECT_TRUE(released);
}

}  // namespace
}  // namespace setu::rpc
