// SPDX-License-Identifier: Apache-2.0
#include "services/router/drain_rate.h"

#include <algorithm>
#include <cmath>

namespace setu::router {
namespace {

using Seconds = std::chrono::duration<double>;

// Below so many the sums are a memory of too little: three times kMemory after a single one.
constexpr double kLeastLeft = 0.05;
// A client is turned away for what is known of kMemory, not for less.
constexpr double kEnoughLeft = 1;

}  // namespace

void DrainRate::Looked(TimePoint now, size_t left, size_t waiting) {
  const double kept = std::exp(-Seconds(now - looked_) / Seconds(kMemory));
  seconds_ *= kept;
  left_ *= kept;
  if (waiting_) {
    seconds_ += Seconds(kMemory).count() * (1 - kept);  // the time since then, faded alike
    left_ += static_cast<double>(left);
  }
  if (!waiting_ || left > 0) moved_ = now;
  looked_ = now;
  waiting_ = waiting > 0;
}

Duration DrainRate::RetryAfter(TimePoint now, size_t ahead) const {
  Seconds turn(0);
  if (waiting_) turn = now - moved_;
  if (left_ >= kLeastLeft) {
    turn = std::max(turn, Seconds(seconds_ / left_ * static_cast<double>(ahead + 1)));
  }
  return std::chrono::duration_cast<Duration>(
      std::clamp(turn, Seconds(kShortest), Seconds(kLongest)));
}

std::optional<Duration> DrainRate::LongestWait(size_t ahead) const {
  if (!waiting_ || left_ < kEnoughLeft) return std::nullopt;
  return std::chrono::duration_cast<Duration>(
      Seconds(seconds_ / left_ / kSteady * static_cast<double>(ahead + 1)));
}

}  // namespace setu::router
