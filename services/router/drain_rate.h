// SPDX-License-Identifier: Apache-2.0
// How fast the queue drains, and from that when a refused client may come back. Pure policy: time
// is passed in. Only what left while somebody had to wait counts, over the time that somebody had
// to: light load is no slow drain, and starts that met free room are no fast one. What is older
// fades within kMemory.
//
//   DrainRate rate;
//   rate.Looked(now, /*left=*/2, /*waiting=*/7);          // after each look at the queue
//   Refuse("the queue is full", rate.RetryAfter(now, queue.size()));
//
// Where nobody had to wait lately nothing is known, and RetryAfter is kShortest.
#ifndef SETU_SERVICES_ROUTER_DRAIN_RATE_H_
#define SETU_SERVICES_ROUTER_DRAIN_RATE_H_

#include <chrono>
#include <cstddef>
#include <optional>

#include "common/base/clock.h"

namespace setu::router {

class DrainRate {
 public:
  static constexpr Duration kShortest = std::chrono::milliseconds(100);
  static constexpr Duration kLongest = std::chrono::seconds(30);
  static constexpr Duration kMemory = std::chrono::seconds(10);
  static constexpr double kSteady = 0.75;

  // `left` were taken off the queue's front since the last look; `waiting` could not be.
  void Looked(TimePoint now, size_t left, size_t waiting);
  // When one more behind `ahead` may come back, within [kShortest, kLongest]. While nobody
  // leaves it grows: as long again as that has lasted, at least.
  Duration RetryAfter(TimePoint now, size_t ahead) const;
  // How long one more behind `ahead` has to wait for its turn at the longest, where the rate does
  // not fall below kSteady of what it was; nullopt where too few have left lately to say.
  std::optional<Duration> LongestWait(size_t ahead) const;

 private:
  // Sums in which the past counts less by a factor of e per kMemory.
  double seconds_ = 0;  // with somebody waiting
  double left_ = 0;     // then
  TimePoint looked_;
  TimePoint moved_;  // when somebody left last, or began to wait
  bool waiting_ = false;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_DRAIN_RATE_H_
