// SPDX-License-Identifier: Apache-2.0
// The one queue of the cluster: first come, first served, resumes before new prompts. Pure policy:
// time is passed in, entries are the caller's numbers. Every call is logarithmic at most.
//
//   AdmissionQueue queue({.capacity = 256, .queue_timeout = std::chrono::seconds(30)});
//   auto ticket = queue.Push(request, now, deadline);
//   if (!ticket) return Exhausted("the queue is full");
//   while (auto next = queue.Front(); next && CanPlace(*next)) Start(queue.PopFront());
//   for (AdmissionQueue::Expired& e : queue.Expire(now)) Fail(e.request, e.reason);
//   inbox.WaitUntil(queue.NextExpiry());
#ifndef SETU_SERVICES_ROUTER_ADMISSION_QUEUE_H_
#define SETU_SERVICES_ROUTER_ADMISSION_QUEUE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace setu::router {

class AdmissionQueue {
 public:
  struct Config {
    size_t capacity = 256;                               // new prompts; resumes come on top
    Duration queue_timeout = std::chrono::seconds(30);   // a new prompt waits at most
    Duration resume_timeout = std::chrono::seconds(30);  // a resume waits at most
  };

  // An entry's place; orders resumes before new prompts, each by arrival.
  struct Ticket {
    bool is_new = true;
    uint64_t arrival = 0;
    auto operator<=>(const Ticket&) const = default;
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

  // nullopt where capacity new prompts wait already.
  [[nodiscard]] std::optional<Ticket> Push(uint64_t request, TimePoint now, TimePoint deadline);
  // A request that was admitted before and lost its place in a worker: never refused.
  Ticket PushResume(uint64_t request, TimePoint now, TimePoint deadline);

  // The request whose turn it is.
  std::optional<uint64_t> Front() const;
  // Takes it out; the queue must not be empty.
  uint64_t PopFront();
  // Takes a request out whose client left; false where it is out already.
  bool Remove(const Ticket& ticket);

  // Takes out all whose time is over, the earliest first.
  std::vector<Expired> Expire(TimePoint now);
  std::optional<TimePoint> NextExpiry() const;

  size_t size() const { return entries_.size(); }
  size_t resumes() const { return entries_.size() - new_prompts_; }

 private:
  struct Entry {
    uint64_t request = 0;
    TimePoint expiry;
    Reason reason = Reason::kDeadline;
  };
  Ticket Insert(bool is_new, uint64_t request, TimePoint now, TimePoint deadline);
  void Erase(std::map<Ticket, Entry>::iterator entry);

  const Config config_;
  std::map<Ticket, Entry> entries_;
  std::set<std::pair<TimePoint, Ticket>> expiries_;
  size_t new_prompts_ = 0;
  uint64_t next_arrival_ = 0;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_ADMISSION_QUEUE_H_
