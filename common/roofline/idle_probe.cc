// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/idle_probe.h"

#include <algorithm>
#include <utility>

namespace setu::roofline {

IdleProbe::IdleProbe(kernels::Ops& ops, const model::Weights& weights, std::string lock_path,
                     TimePoint now)
    : ops_(ops), weights_(weights), lock_path_(std::move(lock_path)), not_before_(now + kEvery) {}

std::optional<TimePoint> IdleProbe::next() const {
  if (!idle_since_) return std::nullopt;
  return std::max(*idle_since_ + kIdle, not_before_);
}

std::optional<Peaks> IdleProbe::Turn(TimePoint now, bool idle) {
  if (!idle) {
    idle_since_.reset();
    if (probe_) Stop(now);
    return std::nullopt;
  }
  if (!idle_since_) idle_since_ = now;
  if (now < *next()) return std::nullopt;
  if (!probe_) {
    lock_.emplace(lock_path_, Duration::zero());
    if (!lock_->held()) {
      Stop(now + kIdle);
      return std::nullopt;
    }
    probe_.emplace(ops_, weights_);
  }
  if (!probe_->Slice()) return std::nullopt;
  const Peaks peaks = probe_->peaks();
  Stop(now + kEvery);
  return peaks;
}

void IdleProbe::Stop(TimePoint next_after) {
  probe_.reset();
  lock_.reset();
  not_before_ = next_after;
}

}  // namespace setu::roofline
