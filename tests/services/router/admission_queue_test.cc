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

std::vector<uint64_t> PopAll(AdmissionQueue& queue) {
  std::vector<uint64_t> order;
  while (queue.Front()) order.push_back(queue.PopFront());
  return order;
}

TEST(AdmissionQueue, ServesInOrderOfArrivalWithResumesFirst) {
  AdmissionQueue queue({});
  ASSERT_TRUE(queue.Push(1, kStart, kNever));
  ASSERT_TRUE(queue.Push(2, kStart, kNever));
  queue.PushResume(3, kStart, kNever);
  queue.PushResume(4, kStart, kNever);
  ASSERT_TRUE(queue.Push(5, kStart, kNever));
  EXPECT_EQ(queue.Front(), 3u);
  EXPECT_THAT(PopAll(queue), ElementsAre(3, 4, 1, 2, 5));
  EXPECT_EQ(queue.Front(), std::nullopt);
}

TEST(AdmissionQueue, IsBoundedForNewPromptsAndNeverRefusesAResume) {
  AdmissionQueue queue({.capacity = 2});
  ASSERT_TRUE(queue.Push(1, kStart, kNever));
  ASSERT_TRUE(queue.Push(2, kStart, kNever));
  EXPECT_FALSE(queue.Push(3, kStart, kNever));
  queue.PushResume(4, kStart, kNever);
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(queue.resumes(), 1u);
  EXPECT_FALSE(queue.Push(5, kStart, kNever));
  queue.PopFront();  // the resume: no room for a new prompt comes of it
  EXPECT_FALSE(queue.Push(6, kStart, kNever));
  queue.PopFront();
  EXPECT_TRUE(queue.Push(7, kStart, kNever));
}

TEST(AdmissionQueue, CapacityZeroQueuesNothing) {
  AdmissionQueue queue({.capacity = 0});
  EXPECT_FALSE(queue.Push(1, kStart, kNever));
  EXPECT_EQ(queue.NextExpiry(), std::nullopt);
}

TEST(AdmissionQueue, RemoveTakesOutOnceAndMakesRoom) {
  AdmissionQueue queue({.capacity = 1});
  auto ticket = queue.Push(1, kStart, kNever);
  ASSERT_TRUE(ticket);
  EXPECT_TRUE(queue.Remove(*ticket));
  EXPECT_FALSE(queue.Remove(*ticket));
  EXPECT_EQ(queue.NextExpiry(), std::nullopt);
  EXPECT_TRUE(queue.Push(2, kStart, kNever));
}

TEST(AdmissionQueue, ExpiresByDeadlineOrTimeoutWhicheverComesFirst) {
  AdmissionQueue queue({.queue_timeout = seconds(30), .resume_timeout = seconds(10)});
  ASSERT_TRUE(queue.Push(1, kStart, kStart + seconds(5)));
  ASSERT_TRUE(queue.Push(2, kStart, kNever));
  queue.PushResume(3, kStart, kNever);
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

// Against a plain list, under a random mix of calls.
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
          auto ticket = queue.Push(request, now, deadline);
          ASSERT_EQ(ticket.has_value(), news < 8) << "seed " << seed;
          const TimePoint expiry = std::min(deadline, now + seconds(30));
          if (ticket) list.push_back({request, true, expiry, *ticket});
          break;
        }
        case 1: {
          auto place = std::find_if(list.begin(), list.end(), [](auto& w) { return w.is_new; });
          auto ticket = queue.PushResume(request, now, kNever);
          list.insert(place, {request, false, now + seconds(30), ticket});
          break;
        }
        case 2:
          if (list.empty()) break;
          ASSERT_EQ(queue.PopFront(), list.front().request) << "seed " << seed;
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
