// SPDX-License-Identifier: Apache-2.0
#include "services/decode/scheduler.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace setu::decode {

Scheduler::Scheduler(Room& room) : room_(room) {
  running_.reserve(room.limits().max_sequences);
  plan_.batch.reserve(room.limits().max_sequences);
  plan_.preempted.reserve(room.limits().max_sequences);
}

void Scheduler::Join(Sequence& sequence) { running_.push_back(&sequence); }

void Scheduler::Leave(Sequence& sequence) {
  const auto place = std::find(running_.begin(), running_.end(), &sequence);
  SETU_CHECK(place != running_.end(), "only a sequence that joined leaves");
  running_.erase(place);
}

const Scheduler::Plan& Scheduler::Next() {
  plan_.batch.clear();
  plan_.preempted.clear();
  for (size_t i = 0; i < running_.size();) {
    Sequence& sequence = *running_[i];
    if (!sequence.paused_since && CoverNextToken(sequence)) plan_.batch.push_back(&sequence);
    if (i < running_.size() && running_[i] == &sequence) ++i;  // unless it gave way
  }
  return plan_;
}

// False where the sequence was preempted itself, or waits: all else is promised, or runs to its end
// in blocks that nobody takes from it.
bool Scheduler::CoverNextToken(Sequence& sequence) {
  const auto covered = static_cast<size_t>(sequence.lease.size()) * room_.limits().block_tokens;
  if (sequence.ids.size() <= covered) return true;
  if (sequence.grant.blocks() > 0) {
    sequence.lease.Append(sequence.grant.Take(1));
    return true;
  }
  while (true) {
    if (std::optional<kv::BlockLease> block = room_.TakeUnpromised()) {
      sequence.lease.Append(*std::move(block));
      return true;
    }
    const Sequence* victim = PreemptYoungest();
    if (victim == nullptr || victim == &sequence) return false;
  }
}

// Null where nobody gives way. Sequences are planned oldest first, and whoever needs a block gives
// way itself or is the oldest: the victim is never in the batch already.
Sequence* Scheduler::PreemptYoungest() {
  const auto gives_way = [](const Sequence* s) { return !s->grant.shape().all_output; };
  const auto oldest = std::prev(running_.rend());
  const auto place = std::find_if(running_.rbegin(), oldest, gives_way);
  if (place == oldest) return nullptr;
  Sequence* const victim = *place;
  running_.erase(std::next(place).base());
  victim->lease.Release();
  victim->grant.Release();
  plan_.preempted.push_back(victim);
  return victim;
}

}  // namespace setu::decode
