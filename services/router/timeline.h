// SPDX-License-Identifier: Apache-2.0
// When a request went from phase to phase, and what its attempts came to. A phase ends where the
// next one begins, so queue + grant + prefill + decode is the time since its arrival, whenever one
// looks. Pure: time is passed in.
//
//   Timeline timeline(arrival);
//   timeline.Enter(Phase::kGrant, now);                      // workers were chosen
//   timeline.Enter(Phase::kPrefill, now);                    // decode promised room
//   const uint32_t attempt = timeline.BeginAttempt(decode, prefill, now);
//   timeline.Enter(Phase::kDecode, now);                     // the first token
//   timeline.EndAttempt(attempt, absl::OkStatus(), now);            // decode holds the KV
//   *finished.mutable_timings() = timeline.Timings(now);
#ifndef SETU_SERVICES_ROUTER_TIMELINE_H_
#define SETU_SERVICES_ROUTER_TIMELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "setu/v1/inference.pb.h"

namespace setu::router {

// In their order. What comes after the first token, a resume too, is decode.
enum class Phase : uint8_t {
  kQueue,    // until workers are chosen
  kGrant,    // until the decode worker promises room; again where one refused
  kPrefill,  // until the first token
  kDecode,   // until the end
};

// One prefill of a request's tokens, up to the KV's commit on decode.
struct Attempt {
  std::string decode;  // addresses; equal: the decode worker computes the prompt itself
  std::string prefill;
  TimePoint begin;
  std::optional<TimePoint> end;
  absl::Status status;  // of its end
  uint64_t kv_bytes = 0;
  Duration tail{0};  // of the KV's transfer, after the first token
};

class Timeline {
 public:
  static constexpr size_t kPhases = 4;
  // What is kept of the attempts; all count.
  static constexpr size_t kMaxAttempts = 32;

  explicit Timeline(TimePoint arrival) { begins_.fill(arrival); }

  // The phase that it is in, or one behind it. The grant may be entered again.
  void Enter(Phase phase, TimePoint now);
  Phase phase() const { return phase_; }
  // Phases that it has not reached begin now.
  TimePoint Begin(Phase phase, TimePoint now) const;
  Duration In(Phase phase, TimePoint now) const;

  // The attempt's number, from 1.
  uint32_t BeginAttempt(std::string decode, std::string prefill, TimePoint now);
  // Its first end counts.
  void EndAttempt(uint32_t attempt, const absl::Status& status, TimePoint now);
  void Moved(uint32_t attempt, uint64_t kv_bytes);
  void Trailed(uint32_t attempt, Duration tail);
  // The first kMaxAttempts of them.
  const std::vector<Attempt>& attempts() const { return attempts_; }

  setu::v1::Timings Timings(TimePoint now) const;

 private:
  Attempt* Kept(uint32_t attempt);

  std::array<TimePoint, kPhases> begins_;  // up to phase_
  Phase phase_ = Phase::kQueue;
  std::vector<Attempt> attempts_;
  // Of all attempts.
  uint32_t count_ = 0;
  uint64_t kv_bytes_ = 0;
  Duration tails_{0};
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_TIMELINE_H_
