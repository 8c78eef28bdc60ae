// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/mailbox.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "common/rpc/task.h"
#include "tests/support/fake_clock.h"
#include "tests/support/loop_thread.h"

namespace setu::rpc {
namespace {

using std::chrono::seconds;
using testing::FakeClock;
using testing::LoopThread;

// Notes what arrives until "end"; "-" for a deadline that passed.
Task<void> Listen(Mailbox<std::string>& mailbox, const Clock& clock,
                  std::vector<std::string>& heard) {
  while (heard.empty() || heard.back() != "end") {
    const TimePoint deadline = clock.Now() + seconds(5);
    std::optional<std::string> word = co_await mailbox.Next(deadline);
    heard.push_back(word.value_or("-"));
  }
}

TEST(MailboxTest, DeliversInOrderAlsoWhatCameBeforeTheWait) {
  FakeClock clock;
  LoopThread owner(clock);
  Mailbox<std::string> mailbox(owner.loop);
  std::vector<std::string> heard;
  owner.Do([&] {
    mailbox.Put("early");
    Spawn(Listen(mailbox, clock, heard));
    EXPECT_EQ(heard, (std::vector<std::string>{"early"}));
    mailbox.Put("late");
    mailbox.Put("later");
    EXPECT_EQ(heard.size(), 1u) << "Put must not run the consumer";
  });
  owner.Do([&] {
    EXPECT_EQ(heard, (std::vector<std::string>{"early", "late", "later"}));
    mailbox.Put("end");
  });
  owner.Do([&] { EXPECT_EQ(heard.back(), "end"); });
}

TEST(MailboxTest, ADeadlineComesOnceAndTheNextWaitStartsAnew) {
  FakeClock clock;
  LoopThread owner(clock);
  Mailbox<std::string> mailbox(owner.loop);
  std::vector<std::string> heard;
  owner.Do([&] { Spawn(Listen(mailbox, clock, heard)); });
  clock.Advance(seconds(5));
  owner.Do([] {});
  owner.Do([&] {
    EXPECT_EQ(heard, (std::vector<std::string>{"-"}));
    mailbox.Put("end");
  });
  owner.Do([&] { EXPECT_EQ(heard, (std::vector<std::string>{"-", "end"})); });
  clock.Advance(seconds(60));
  owner.Do([] {});
  owner.Do([&] { EXPECT_EQ(heard.size(), 2u); });
}

Task<std::string> Two(Mailbox<std::string>& mailbox) {
  const TimePoint never = TimePoint::max();
  std::optional<std::string> first = co_await mailbox.Next(never);
  std::optional<std::string> second = co_await mailbox.Next(never);
  co_return *first + *second;
}

Task<void> Pairs(Mailbox<std::string>& mailbox, std::vector<std::string>& heard) {
  for (int i = 0; i < 2; ++i) {
    std::string both = co_await Two(mailbox);
    heard.push_back(both);
  }
}

TEST(MailboxTest, ATaskThatWaitsResumesItsCallerAtItsEnd) {
  SteadyClock clock;
  LoopThread owner(clock);
  Mailbox<std::string> mailbox(owner.loop);
  std::vector<std::string> heard;
  owner.Do([&] { Spawn(Pairs(mailbox, heard)); });
  for (const char* word : {"a", "b", "c", "d"}) owner.Do([&] { mailbox.Put(word); });
  owner.Do([&] { EXPECT_EQ(heard, (std::vector<std::string>{"ab", "cd"})); });
}

}  // namespace
}  // namespace setu::rpc
