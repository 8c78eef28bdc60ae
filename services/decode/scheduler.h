// SPDX-License-Identifier: Apache-2.0
// Who takes part in the next step, and who must give up its blocks for that: the youngest, but not
// one that was promised all of its blocks, nor the oldest. Every sequence that is not paused gets
// one token per step, the oldest first. Pure policy: no clock, no I/O.
//
//   Scheduler scheduler(room);
//   scheduler.Join(sequence);                  // its KV is committed
//   const Scheduler::Plan& plan = scheduler.Next();
//   for (Sequence* s : plan.preempted) ...     // left already, its blocks are free
//   for (Sequence* s : plan.batch) ...         // its table covers the token to come
#ifndef SETU_SERVICES_DECODE_SCHEDULER_H_
#define SETU_SERVICES_DECODE_SCHEDULER_H_

#include <span>
#include <vector>

#include "services/decode/grant.h"
#include "services/decode/sequence.h"

namespace setu::decode {

class Scheduler {
 public:
  // `room` and every joined sequence must outlive their stay.
  explicit Scheduler(Room& room);

  void Join(Sequence& sequence);   // as the youngest
  void Leave(Sequence& sequence);  // must have joined; keeps its blocks
  std::span<Sequence* const> running() const { return running_; }  // oldest first

  struct Plan {
    std::vector<Sequence*> batch;
    std::vector<Sequence*> preempted;
  };
  // Valid until the next call.
  const Plan& Next();

 private:
  bool CoverNextToken(Sequence& sequence);
  Sequence* PreemptYoungest();

  Room& room_;
  std::vector<Sequence*> running_;
  Plan plan_;
};

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_SCHEDULER_H_
