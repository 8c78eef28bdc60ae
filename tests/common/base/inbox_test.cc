// SPDX-License-Identifier: Apache-2.0
#include "common/base/inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace setu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Inbox, GivesWhatArrivedInOrderOnce) {
  Inbox<int> inbox(8);
  EXPECT_TRUE(inbox.Push(1));
  EXPECT_TRUE(inbox.Push(2));
  EXPECT_THAT(inbox.Drain(), ElementsAre(1, 2));
  EXPECT_THAT(inbox.Drain(), IsEmpty());
}

TEST(Inbox, RefusesAtItsBoundAndKeepsNothingOfTheRefused) {
  Inbox<std::unique_ptr<int>> inbox(1);
  EXPECT_TRUE(inbox.Push(std::make_unique<int>(1)));
  EXPECT_FALSE(inbox.Push(std::make_unique<int>(2)));
  auto& items = inbox.Drain();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(*items[0], 1);
  EXPECT_TRUE(inbox.Push(std::make_unique<int>(3)));
}

TEST(Inbox, EndsAndAnswersPassTheBound) {
  Inbox<int> inbox(1);
  EXPECT_TRUE(inbox.Push(1));
  inbox.PushUnbounded(2);
  EXPECT_THAT(inbox.Drain(), ElementsAre(1, 2));
}

TEST(Inbox, WaitReturnsAtOnceWhereSomethingWaitsOrTheTimeIsOver) {
  Inbox<int> inbox(1);
  inbox.WaitUntil(SteadyClock().Now());  // nothing there, no time left
  ASSERT_TRUE(inbox.Push(1));
  inbox.WaitUntil(std::nullopt);  // no time limit, but something there
}

TEST(Inbox, NothingIsLostOrRepeatedBetweenThreads) {
  Inbox<int> inbox(16);
  constexpr int kEach = 2000;
  auto produce = [&](int first) {
    for (int i = 0; i < kEach; ++i) {
      while (!inbox.Push(first + i)) std::this_thread::yield();
    }
  };
  std::thread one(produce, 0), two(produce, kEach);
  std::vector<int> seen(2 * kEach, 0);
  for (int taken = 0; taken < 2 * kEach;) {
    inbox.WaitUntil(std::nullopt);
    for (int item : inbox.Drain()) {
      ++seen[item];
      ++taken;
    }
  }
  one.join();
  two.join();
  EXPECT_THAT(seen, ::testing::Each(1));
}

}  // namespace
}  // namespace setu
