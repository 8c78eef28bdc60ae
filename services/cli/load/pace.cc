// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/pace.h"

namespace setu::cli {

Pace::Pace(const Workload& workload, uint64_t seed) : workload_(workload) {
  if (!IsOpen(workload.arrivals)) return;
  times_.emplace(workload.arrivals, seed);
  arrival_ = times_->Next();
}

bool Pace::Over(Duration now) const {
  if (started_ >= workload_.requests) return true;
  if (times_) return !arrival_ || *arrival_ >= workload_.duration;
  return now >= workload_.duration;
}

bool Pace::LoopLets(int64_t open) {
  if (const auto* closed = std::get_if<Closed>(&workload_.arrivals)) return open < closed->clients;
  if (open == 0) batch_left_ = std::get<Lockstep>(workload_.arrivals).clients;
  if (batch_left_ == 0) return false;
  --batch_left_;
  return true;
}

std::optional<Duration> Pace::Due(Duration now, int64_t open) {
  if (Over(now)) return {};
  if (!times_) {
    if (!LoopLets(open)) return {};
    ++started_;
    return now;
  }
  if (*arrival_ > now) return {};
  const Duration planned = *arrival_;
  arrival_ = times_->Next();
  ++started_;
  return planned;
}

}  // namespace setu::cli
