// SPDX-License-Identifier: Apache-2.0
#include "services/router/admission_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace setu::router {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using Reason = AdmissionQueue::Reason;
using ::testing::ElementsAre;

const TimePoint kStart{hours(1)};
const TimePoint kNever = kStart + hours(100);

// Tests that are not about tenants or work: one tenant, 10 tokens each.
std::optional<AdmissionQueue::Ticket> Push(AdmissionQueue& queue, uint64_t request,
                                           TimePoint deadline = kNever, const Share& share = {},
                                           TimePoint now = kStart) {
  const auto pushed = queue.Push(request, share, 10, now, deadline);
  if (!pushed) return std::nullopt;
  return pushed->ticket;
}
AdmissionQueue::Ticket PushResume(AdmissionQueue& queue, uint64_t request) {
  return queue.PushResume(request, Priority::kNormal, kStart, kNever);
}

std::vector<uint64_t> TurnsOf(AdmissionQueue& queue, TimePoint now = kStart) {
  std::vector<uint64_t> requests;
  for (const AdmissionQueue::Turn& turn : queue.Turns(now)) requests.push_back(turn.request);
  return requests;
}
std::optional<uint64_t> TakeFirst(AdmissionQueue& queue, TimePoint now = kStart) {
  const auto turns = queue.Turns(now);
  if (turns.empty()) return std::nullopt;
  return queue.Take(turns[0].ticket, now);
}
std::vector<uint64_t> TakeAll(AdmissionQueue& queue, TimePoint now = kStart) {
  std::vector<uint64_t> order;
  while (const auto request = TakeFirst(queue, now)) order.push_back(*request);
  return order;
}

TEST(AdmissionQueue, ServesInOrderOfArrivalWithResumesFirst) {
  AdmissionQueue queue({});
  ASSERT_TRUE(Push(queue, 1));
  ASSERT_TRUE(Push(queue, 2));
  PushResume(queue, 3);
  PushResume(queue, 4);
  ASSERT_TRUE(Push(queue, 5));
  EXPECT_THAT(TurnsOf(queue), ElementsAre(3, 4, 1, 2));
  EXPECT_THAT(TakeAll(queue), ElementsAre(3, 4, 1, 2, 5));
}

TEST(AdmissionQueue, IsBoundedForNewPromptsAndNeverRefusesAResume) {
  AdmissionQueue queue({.capacity = 2});
  ASSERT_TRUE(Push(queue, 1));
  ASSERT_TRUE(Push(queue, 2));
  EXPECT_TRUE(queue.FullFor({}));
  EXPECT_FALSE(Push(queue, 3));
  PushResume(queue, 4);
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_FALSE(Push(queue, 5));
  TakeFirst(queue);  // the resume: no room for a new prompt comes of it
  EXPECT_FALSE(Push(queue, 6));
  TakeFirst(queue);
  EXPECT_TRUE(Push(queue, 7));
}

TEST(AdmissionQueue, CapacityZeroQueuesNothing) {
  AdmissionQueue queue({.capacity = 0});
  EXPECT_FALSE(Push(queue, 1));
  EXPECT_EQ(queue.NextExpiry(), std::nullopt);
}

TEST(AdmissionQueue, RemoveTakesOutOnceAndMakesRoom) {
  AdmissionQueue queue({.capacity = 1});
  auto ticket = Push(queue, 1);
  ASSERT_TRUE(ticket);
  EXPECT_TRUE(queue.Remove(*ticket));
  EXPECT_FALSE(queue.Remove(*ticket));
  EXPECT_EQ(queue.NextExpiry(), std::nullopt);
  EXPECT_TRUE(Push(queue, 2));
}

TEST(AdmissionQueue, WhatWasRemovedIsNoWorkOfItsTenant) {
  AdmissionQueue queue({});
  for (uint64_t request = 1; request <= 3; ++request) {
    queue.Remove(*Push(queue, request, kNever, {.tenant = 1}));
  }
  Push(queue, 4, kNever, {.tenant = 1});
  Push(queue, 5, kNever, {.tenant = 2});
  EXPECT_THAT(TakeAll(queue), ElementsAre(4, 5));
}

TEST(AdmissionQueue, HigherPrioritiesGoFirstEachWithItsResumes) {
  AdmissionQueue queue({});
  Push(queue, 1, kNever, {.priority = Priority::kLow});
  Push(queue, 2, kNever, {.priority = Priority::kNormal});
  Push(queue, 3, kNever, {.priority = Priority::kHigh});
  queue.PushResume(4, Priority::kLow, kStart, kNever);
  queue.PushResume(5, Priority::kNormal, kStart, kNever);
  EXPECT_THAT(TakeAll(queue), ElementsAre(3, 5, 2, 4, 1));
}

// However many of the lower ones wait, and for how long.
TEST(AdmissionQueue, ALowerPriorityHasATurnEachAgeBound) {
  AdmissionQueue queue({.age_bound = seconds(5)});
  for (uint64_t i = 1; i <= 3; ++i) {
    Push(queue, i, kNever, {.priority = Priority::kLow});
    Push(queue, 10 + i, kNever, {.priority = Priority::kNormal});
    Push(queue, 20 + i, kNever, {.priority = Priority::kHigh});
  }
  EXPECT_EQ(TakeFirst(queue, kStart + seconds(5) - Duration(1)), 21u);
  const TimePoint later = kStart + seconds(5);
  EXPECT_EQ(TakeFirst(queue, later), 11u) << "of two that have waited so long the higher";
  EXPECT_THAT(TakeAll(queue, later), ElementsAre(1, 22, 23, 12, 13, 2, 3));
}

// The router's canary among them: what waits for it could wait for ever.
TEST(AdmissionQueue, AResumeOfTheHighestPriorityGoesBeforeAllThatHaveAged) {
  AdmissionQueue queue({.age_bound = seconds(5)});
  Push(queue, 1);
  const TimePoint later = kStart + seconds(60);
  queue.PushResume(2, Priority::kHigh, later, kNever);
  EXPECT_THAT(TurnsOf(queue, later), ElementsAre(2, 1));
}

TEST(AdmissionQueue, AFloodThatHasAgedGoesBeforeNobodyOfItsPriority) {
  AdmissionQueue queue({});
  for (uint64_t i = 1; i <= 20; ++i) Push(queue, i, kNever, {.tenant = 1});
  const TimePoint later = kStart + seconds(20);
  EXPECT_EQ(TakeFirst(queue, later), 1u);
  Push(queue, 100, kNever, {.tenant = 2}, later);
  EXPECT_EQ(TakeFirst(queue, later), 100u);
}

TEST(AdmissionQueue, OthersPassTheFirstWhereItFindsNoRoomUntilItHasAged) {
  AdmissionQueue queue({.age_bound = seconds(5)});
  for (uint64_t request = 1; request <= 6; ++request) Push(queue, request);
  const TimePoint aged = kStart + seconds(5);
  EXPECT_THAT(TurnsOf(queue, aged - Duration(1)), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(TurnsOf(queue, aged), ElementsAre(1));
}

TEST(AdmissionQueue, FullItTakesThoseWhoHoldFewestPlaces) {
  AdmissionQueue queue({.capacity = 4});
  for (uint64_t request = 1; request <= 4; ++request) Push(queue, request, kNever, {.tenant = 1});
  EXPECT_TRUE(queue.FullFor({.tenant = 1}));
  ASSERT_FALSE(queue.FullFor({.tenant = 2}));
  EXPECT_EQ(queue.Push(5, {.tenant = 2}, 10, kStart, kNever)->displaced, 4u) << "the newest";
  EXPECT_EQ(queue.Push(6, {.tenant = 2}, 10, kStart, kNever)->displaced, 3u);
  EXPECT_FALSE(queue.Push(7, {.tenant = 2}, 10, kStart, kNever)) << "both hold two";
  EXPECT_EQ(queue.Push(8, {.tenant = 3}, 10, kStart, kNever)->displaced, 6u);
  EXPECT_TRUE(queue.FullFor({.tenant = 3}));
  EXPECT_FALSE(queue.FullFor({.tenant = 3, .weight = 2}));
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_THAT(TakeAll(queue), ElementsAre(1, 5, 8, 2));
}

TEST(AdmissionQueue, ThePlaceThatGoesIsOfTheLowestPriority) {
  AdmissionQueue queue({.capacity = 3});
  Push(queue, 1, kNever, {.tenant = 1, .priority = Priority::kLow});
  Push(queue, 2, kNever, {.tenant = 1, .priority = Priority::kHigh});
  Push(queue, 3, kNever, {.tenant = 1, .priority = Priority::kHigh});
  EXPECT_EQ(queue.Push(4, {.tenant = 2}, 10, kStart, kNever)->displaced, 1u);
}

TEST(AdmissionQueue, AheadAreTheHigherPrioritiesAndTheResumes) {
  AdmissionQueue queue({});
  Push(queue, 1, kNever, {.priority = Priority::kLow});
  Push(queue, 2, kNever, {.priority = Priority::kHigh});
  queue.PushResume(3, Priority::kNormal, kStart, kNever);
  Push(queue, 4);
  EXPECT_EQ(queue.Ahead({.priority = Priority::kHigh}), 1u);
  EXPECT_EQ(queue.Ahead({.priority = Priority::kNormal}), 3u);
  EXPECT_EQ(queue.Ahead({.priority = Priority::kLow}), 4u);
}

TEST(AdmissionQueue, IsSharedWhileSeveralTenantsSendPrompts) {
  AdmissionQueue queue({.share_memory = seconds(30)});
  EXPECT_FALSE(queue.Shared(kStart));
  Push(queue, 1, kNever, {.tenant = 1});
  Push(queue, 2, kNever, {.tenant = 1});
  EXPECT_FALSE(queue.Shared(kStart)) << "one";
  Push(queue, 3, kNever, {.tenant = 2}, kStart + seconds(10));
  for (int s = 11; s < 60; ++s) {
    Push(queue, 4, kNever, {.tenant = 1}, kStart + seconds(s));
    EXPECT_EQ(queue.Shared(kStart + seconds(s)), s < 40) << s << " s; 2 came after 10";
  }
  Push(queue, 5, kNever, {.tenant = 3}, kStart + seconds(60));
  EXPECT_TRUE(queue.Shared(kStart + seconds(88))) << "1 came after 59";
  TakeAll(queue);
  EXPECT_TRUE(queue.Shared(kStart + seconds(88))) << "what has left may be in the way";
  EXPECT_FALSE(queue.Shared(kStart + seconds(89)));
}

TEST(AdmissionQueue, ExpiresByDeadlineOrTimeoutWhicheverComesFirst) {
  AdmissionQueue queue({.queue_timeout = seconds(30), .resume_timeout = seconds(10)});
  ASSERT_TRUE(Push(queue, 1, kStart + seconds(5)));
  ASSERT_TRUE(Push(queue, 2));
  PushResume(queue, 3);
  EXPECT_EQ(queue.NextExpiry(), kStart + seconds(5));
  EXPECT_TRUE(queue.Expire(kStart + seconds(5) - Duration(1)).empty());

  auto expired = queue.Expire(kStart + seconds(5));
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].request, 1u);
  EXPECT_EQ(expired[0].reason, Reason::kDeadline);
  EXPECT_TRUE(expired[0].is_new);

  EXPECT_EQ(queue.NextExpiry(), kStart + seconds(10));
  expired = queue.Expire(kStart + seconds(40));
  ASSERT_EQ(expired.size(), 2u);
  EXPECT_EQ(expired[0].request, 3u);
  EXPECT_EQ(expired[0].reason, Reason::kTimeout);
  EXPECT_FALSE(expired[0].is_new);
  EXPECT_EQ(expired[1].request, 2u);
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.NextExpiry(), std::nullopt);
}

// One tenant and one priority: against a plain list, under a random mix of calls.
TEST(AdmissionQueue, AgreesWithAPlainListOnRandomCalls) {
  struct Waiting {
    uint64_t request;
    bool is_new;
    TimePoint expiry;
    AdmissionQueue::Ticket ticket;
  };
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    AdmissionQueue queue({.capacity = 8});
    std::vector<Waiting> list;
    TimePoint now = kStart;
    for (uint64_t request = 0; request < 500; ++request) {
      const auto news = std::count_if(list.begin(), list.end(), [](auto& w) { return w.is_new; });
      switch (random() % 5) {
        case 0: {
          const TimePoint deadline = now + seconds(random() % 60);
          auto ticket = Push(queue, request, deadline, {.priority = Priority::kHigh}, now);
          ASSERT_EQ(ticket.has_value(), news < 8) << "seed " << seed;
          const TimePoint expiry = std::min(deadline, now + seconds(30));
          if (ticket) list.push_back({request, true, expiry, *ticket});
          break;
        }
        case 1: {
          auto place = std::find_if(list.begin(), list.end(), [](auto& w) { return w.is_new; });
          auto ticket = queue.PushResume(request, Priority::kHigh, now, kNever);
          list.insert(place, {request, false, now + seconds(30), ticket});
          break;
        }
        case 2:
          if (list.empty()) break;
          ASSERT_EQ(TakeFirst(queue, now), list.front().request) << "seed " << seed;
          list.erase(list.begin());
          break;
        case 3: {
          if (list.empty()) break;
          const auto victim = list.begin() + static_cast<ptrdiff_t>(random() % list.size());
          ASSERT_TRUE(queue.Remove(victim->ticket));
          list.erase(victim);
          break;
        }
        case 4: {
          now += seconds(random() % 20);
          const auto expired = queue.Expire(now);
          const auto gone = std::erase_if(list, [&](auto& w) { return w.expiry <= now; });
          ASSERT_EQ(expired.size(), gone) << "seed " << seed;
          break;
        }
      }
      ASSERT_EQ(queue.size(), list.size());
    }
  }
}

}  // namespace
}  // namespace setu::router
