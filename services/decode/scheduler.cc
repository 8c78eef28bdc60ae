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
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (!sequence.paused_since && CoverNextToken(sequence)) plan_.batch.push_back(&sequence);
  }
  return plan_;
}

// False where the sequence was preempted itself, or is the oldest and all else is promised: it then
// waits until a grant ends or becomes a younger sequence.
bool Scheduler::CoverNextToken(Sequence& sequence) {
  const auto covered = static_cast<size_t>(sequence.lease.size()) * room_.limits().block_tokens;
  if (sequence.ids.size() <= covered) return true;
  if (sequence.grant.blocks() > 0) {
    sequence.lease.Append(sequence.grant.Take(1));
    return true;
  }
  while (running_.size() > 1 || room_.unpromised() > 0) {
    if (std::optional<kv::BlockLease> block = room_.TakeUnpromised()) {
      sequence.lease.Append(*std::move(block));
      return true;
    }
    const bool self = running_.back() == &sequence;
    PreemptYoungest();
    if (self) return false;
  }
  return false;
}

// Sequences are planned oldest first, so the youngest is never in the batch already.
void Scheduler::PreemptYoungest() {
  Sequence& victim = *running_.back();
  running_.pop_back();
  victim.lease.Release();
  victim.grant.Release();
  plan_.preempted.push_back(&victim);
}

}  // namespace setu::decode
