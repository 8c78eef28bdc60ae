// SPDX-License-Identifier: Apache-2.0
#include "services/router/timeline.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace setu::router {

void Timeline::Enter(Phase phase, TimePoint now) {
  SETU_CHECK(phase >= phase_, "a request does not go back to an earlier phase");
  begins_[static_cast<size_t>(phase)] = now;
  while (phase_ < phase) {  // those that it skipped took no time
    phase_ = static_cast<Phase>(static_cast<size_t>(phase_) + 1);
    begins_[static_cast<size_t>(phase_)] = now;
  }
}

TimePoint Timeline::Begin(Phase phase, TimePoint now) const {
  return phase <= phase_ ? begins_[static_cast<size_t>(phase)] : now;
}

Duration Timeline::In(Phase phase, TimePoint now) const {
  const TimePoint end =
      phase < Phase::kDecode ? Begin(static_cast<Phase>(static_cast<size_t>(phase) + 1), now) : now;
  return end - Begin(phase, now);
}

uint32_t Timeline::BeginAttempt(std::string decode, std::string prefill, TimePoint now) {
  if (attempts_.size() < kMaxAttempts) {
    attempts_.push_back({.decode = std::move(decode), .prefill = std::move(prefill), .begin = now});
  }
  return ++count_;
}

void Timeline::EndAttempt(uint32_t attempt, const absl::Status& status, TimePoint now) {
  Attempt* const kept = Kept(attempt);
  if (kept == nullptr || kept->end) return;
  kept->end = now;
  kept->status = status;
}

void Timeline::Moved(uint32_t attempt, uint64_t kv_bytes) {
  kv_bytes_ += kv_bytes;
  if (Attempt* const kept = Kept(attempt)) kept->kv_bytes += kv_bytes;
}

void Timeline::Trailed(uint32_t attempt, Duration tail) {
  tails_ += tail;
  if (Attempt* const kept = Kept(attempt)) kept->tail += tail;
}

Attempt* Timeline::Kept(uint32_t attempt) {
  return attempt <= attempts_.size() ? &attempts_[attempt - 1] : nullptr;
}

setu::v1::Timings Timeline::Timings(TimePoint now) const {
  const Duration decode = In(Phase::kDecode, now);
  setu::v1::Timings timings;
  timings.set_queue_ms(Milliseconds(In(Phase::kQueue, now)));
  timings.set_grant_ms(Milliseconds(In(Phase::kGrant, now)));
  timings.set_prefill_ms(Milliseconds(In(Phase::kPrefill, now)));
  timings.set_decode_ms(Milliseconds(decode));
  timings.set_first_token_ms(Milliseconds(Begin(Phase::kDecode, now) - Begin(Phase::kQueue, now)));
  // The sender counts from when it had the first token, a little before we did.
  timings.set_transfer_ms(Milliseconds(std::min(tails_, decode)));
  timings.set_kv_bytes(kv_bytes_);
  timings.set_attempts(count_);
  return timings;
}

}  // namespace setu::router
