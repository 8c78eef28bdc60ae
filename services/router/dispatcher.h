// SPDX-License-Identifier: Apache-2.0
// The queue at work: whoever wants workers waits here, and gets a pair as soon as it has its turn
// and placement finds one. On the loop's thread.
//
//   auto wait = dispatcher.Admit(order);            // nullopt: the queue is full
//   ... order.done(Placed) or order.done(a Status) is called once, later, unless `wait` is dropped
#ifndef SETU_SERVICES_ROUTER_DISPATCHER_H_
#define SETU_SERVICES_ROUTER_DISPATCHER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "common/rpc/event_loop.h"
#include "services/router/admission_queue.h"
#include "services/router/drain_rate.h"
#include "services/router/placement.h"
#include "services/router/prompt_chains.h"
#include "services/router/worker.h"
#include "services/router/worker_directory.h"
#include "services/router/worker_health.h"

namespace setu::router {

// The workers of one attempt, counted as taken while this lives.
struct Placed {
  Claim prefill;  // whoever computes the prompt
  Claim decode;   // empty where the order had a grant already
  Trials trials;
};

struct Order {
  Share share;
  PlacementRequest size;            // its `decode` is filled in from `granted`
  PromptChains prompt;              // to find workers that know its start
  std::shared_ptr<Worker> granted;  // null: a grant is wanted too
  TimePoint deadline;
  // A Status is ABORTED where `granted` takes no new work any more, or no prefill worker reaches it
  // now: the grant is worth nothing, and another may be asked for. Any other is final: what NoPair
  // says where there is no pair at the end of the wait, or UNAVAILABLE where every worker of a role
  // has failed; else DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED or, for a resume, UNAVAILABLE after its
  // timeout, or where another tenant took its place; INVALID_ARGUMENT where no worker is large
  // enough.
  std::function<void(absl::StatusOr<Placed>)> done;
};

// In tokens: of its prompt, and of answers that are cut off at a length which many do not reach.
int64_t ExpectedWork(const PlacementRequest& size);

class Dispatcher {
 public:
  // `pumped` runs whenever the queue was looked at.
  Dispatcher(rpc::EventLoop& loop, WorkerDirectory& directory, WorkerHealth& health,
             const AdmissionQueue::Config& config, std::function<void()> pumped);
  ~Dispatcher();

  // A place in the queue, given up by dropping it. The dispatcher must outlive it.
  class Wait {
   public:
    Wait(Dispatcher& dispatcher, AdmissionQueue::Ticket ticket, uint64_t id)
        : dispatcher_(&dispatcher), ticket_(ticket), id_(id) {}
    Wait(Wait&& other) noexcept
        : dispatcher_(std::exchange(other.dispatcher_, nullptr)),
          ticket_(other.ticket_),
          id_(other.id_) {}
    Wait& operator=(Wait&&) = delete;
    ~Wait() {
      if (dispatcher_ != nullptr) dispatcher_->Leave(ticket_, id_);
    }

   private:
    Dispatcher* dispatcher_;
    AdmissionQueue::Ticket ticket_;
    uint64_t id_;
  };

  // INVALID_ARGUMENT names what of a new request is too large for every pair, however empty; it
  // need not wait to hear so. OK where no pair is known: nothing can be said.
  absl::Status CheckFits(PlacementRequest size) const;
  // nullopt where the queue is full for its tenant.
  [[nodiscard]] std::optional<Wait> Admit(Order order);
  // For what was admitted before: never refused, and before new prompts.
  [[nodiscard]] Wait Resume(Order order);
  // What was admitted came to so many tokens more than ExpectedWork, or less.
  void Settle(const Share& share, int64_t tokens) { queue_.Settle(share, tokens); }
  // Something changed: look at the queue again in the loop's next turn.
  void Kick();

  size_t queue_length() const { return queue_.size(); }
  bool FullFor(const Share& share) const { return queue_.FullFor(share); }
  // Grows with each that leaves the queue: until then who finds it full does so again.
  uint64_t departures() const { return departures_; }
  // When a client that was refused for lack of room may find some.
  Duration RetryAfter(const Share& share) const {
    return drain_.RetryAfter(loop_.clock().Now(), queue_.Ahead(share));
  }
  // RESOURCE_EXHAUSTED where one that came now would have no turn before its deadline or the
  // queue's timeout, as far as can be told.
  absl::Status CheckInTime(const Share& share, TimePoint deadline) const;

 private:
  void Pump();
  bool TryNext(const Workers& workers);
  bool Try(const AdmissionQueue::Turn& turn, const Workers& workers);
  void ExpireDue();
  absl::Status WhyExpired(const AdmissionQueue::Expired& expired) const;
  void Answer(uint64_t id, absl::StatusOr<Placed> result);
  void Leave(const AdmissionQueue::Ticket& ticket, uint64_t id);

  rpc::EventLoop& loop_;
  WorkerDirectory& directory_;
  WorkerHealth& health_;
  const AdmissionQueue::Config config_;
  const std::function<void()> pumped_;
  AdmissionQueue queue_;
  DrainRate drain_;
  std::map<uint64_t, Order> orders_;
  uint64_t next_id_ = 0;
  uint64_t departures_ = 0;
  std::optional<rpc::EventLoop::Timer> expiry_;
  bool kicked_ = false;
  std::shared_ptr<Dispatcher*> alive_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_DISPATCHER_H_
