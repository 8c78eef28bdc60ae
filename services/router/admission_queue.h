// SPDX-License-Identifier: Apache-2.0
// The one queue of the cluster. Pure policy: time is passed in, entries are the caller's numbers.
// Every call is logarithmic at most.
//
//   AdmissionQueue queue({.capacity = 256, .queue_timeout = std::chrono::seconds(30)});
//   auto pushed = queue.Push(request, share, work, now, deadline);
//   if (!pushed) return Exhausted("the queue is full");
//   if (pushed->displaced) Fail(*pushed->displaced, "the queue is full");
//   for (const AdmissionQueue::Turn& turn : queue.Turns(now)) {
//     if (CanPlace(turn.request)) return Start(queue.Take(turn.ticket, now));
//   }
//   for (AdmissionQueue::Expired& e : queue.Expire(now)) Fail(e.request, e.reason);
//   inbox.WaitUntil(queue.NextExpiry());
//
// Whose turn it is:
// - The higher priority's, strictly; but a lower one that has waited for age_bound since its last
//   turn has the next, unless a resume of the highest waits.
// - Of one priority resumes first, by arrival; then tenants by fair shares of work (fair_lines.h),
//   each one's prompts by arrival.
// - Who is first and finds no room may be passed by a few others that do, until it has waited for
//   age_bound: then room is kept for it.
// Full, it takes one more of a tenant that would not come to hold as many places for its weight as
// the one that holds most does, whose newest prompt goes.
#ifndef SETU_SERVICES_ROUTER_ADMISSION_QUEUE_H_
#define SETU_SERVICES_ROUTER_ADMISSION_QUEUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "services/router/fair_lines.h"
#include "services/router/share.h"

namespace setu::router {

class AdmissionQueue {
 public:
  // Turns() has at most so many.
  static constexpr size_t kMostTurns = 4;

  struct Config {
    size_t capacity = 256;                               // new prompts; resumes come on top
    Duration queue_timeout = std::chrono::seconds(30);   // a new prompt waits at most
    Duration resume_timeout = std::chrono::seconds(30);  // a resume waits at most
    Duration age_bound = std::chrono::seconds(5);        // passed over for at most so long
    // A tenant that sent nothing for so long is not expected to come back.
    Duration share_memory = std::chrono::seconds(30);
  };

  // An entry's name; grows with each.
  struct Ticket {
    uint64_t arrival = 0;
    auto operator<=>(const Ticket&) const = default;
  };
  struct Pushed {
    Ticket ticket;
    std::optional<uint64_t> displaced;  // a request that is out, for this one
  };
  struct Turn {
    Ticket ticket;
    uint64_t request = 0;
  };

  enum class Reason : uint8_t {
    kDeadline,  // the request's own deadline: DEADLINE_EXCEEDED
    kTimeout,   // queue_timeout or resume_timeout: RESOURCE_EXHAUSTED, or UNAVAILABLE for a resume
  };
  struct Expired {
    uint64_t request = 0;
    bool is_new = true;
    Reason reason = Reason::kDeadline;
  };

  explicit AdmissionQueue(const Config& config);

  // nullopt where it is full for this tenant. `work`: tokens of prompt and expected answer.
  [[nodiscard]] std::optional<Pushed> Push(uint64_t request, const Share& share, int64_t work,
                                           TimePoint now, TimePoint deadline);
  // A request that was admitted before and lost its place in a worker: never refused, nor counted
  // as work again.
  Ticket PushResume(uint64_t request, Priority priority, TimePoint now, TimePoint deadline);
  bool FullFor(const Share& share) const;
  // How many go before one that came now, if all are equal work.
  size_t Ahead(const Share& share) const;
  // Whether several tenants have sent prompts within share_memory: what is placed now may be in
  // the way of another's.
  bool Shared(TimePoint now) const;

  // Whose turn it is, and behind it who may pass where there is no room for it. Empty only where
  // the queue is.
  std::vector<Turn> Turns(TimePoint now) const;
  // It had its turn: its request.
  uint64_t Take(const Ticket& ticket, TimePoint now);
  // Takes a request out whose client left; false where it is out already.
  bool Remove(const Ticket& ticket);
  // What had its turn was so much more work than was thought, or less.
  void Settle(const Share& share, int64_t work);

  // Takes out all whose time is over, the earliest first.
  std::vector<Expired> Expire(TimePoint now);
  std::optional<TimePoint> NextExpiry() const;

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t request = 0;
    bool is_new = true;
    Share share;
    int64_t work = 0;
    TimePoint arrived;
    TimePoint expiry;
    Reason reason = Reason::kDeadline;
  };
  using Entries = std::map<Ticket, Entry>;
  struct Class {
    std::set<uint64_t> resumes;
    FairLines prompts;
    TimePoint since;  // its last turn, or it was empty before
    size_t size() const { return resumes.size() + prompts.size(); }
  };
  struct Holder {
    int64_t places = 0;
    uint32_t weight = 1;
    double held() const { return static_cast<double>(places) / weight; }
  };
  struct Sender {
    uint32_t tenant = 0;
    TimePoint at;
  };

  Class& ClassOf(Priority priority) { return classes_[static_cast<size_t>(priority)]; }
  Ticket Insert(Entry entry, TimePoint now, TimePoint deadline);
  void Erase(Entries::iterator entry);
  void CountPlace(const Share& share, int change);
  std::array<const Class*, kPriorities> InOrder(TimePoint now) const;
  std::optional<uint64_t> Displace();

  const Config config_;
  Entries entries_;
  std::array<Class, kPriorities> classes_;
  std::set<std::pair<TimePoint, Ticket>> expiries_;
  std::map<uint32_t, Holder> holders_;  // of new prompts, by tenant
  std::set<std::pair<double, uint32_t>> most_held_;
  std::optional<Sender> latest_;  // whose prompt came last
  std::optional<Sender> other_;   // and last of all the other tenants
  int64_t new_prompts_ = 0;
  uint64_t next_arrival_ = 0;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_ADMISSION_QUEUE_H_
