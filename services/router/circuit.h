// SPDX-License-Identifier: Apache-2.0
// Whether what has failed is tried again: a circuit breaker. Pure policy: time is passed in.
// - Closed: all may try. One failure opens it: the next try shall not go where that one failed.
// - Open: nobody may, for a time that doubles each time that it opens again before it was closed,
//   up to a bound, and of which up to half is taken off by chance: several routers come back apart.
// - Half-open, when that time is over: one may, as the probe. That it works closes the circuit,
//   that it fails opens it.
// Of tries that began before it opened last nothing is learnt.
//
//   auto circuit = std::make_shared<Circuit>(Circuit::Times(), seed);
//   if (circuit->Admits(now)) trial = Trial(circuit);
//   trial.Worked();       // or trial.Failed(now); dropped, it has taught nothing
#ifndef SETU_SERVICES_ROUTER_CIRCUIT_H_
#define SETU_SERVICES_ROUTER_CIRCUIT_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>

#include "common/base/clock.h"

namespace setu::router {

class Circuit {
 public:
  struct Times {
    Duration first = std::chrono::seconds(1);
    // Below the time that a request waits for a worker: who comes back is found in time.
    Duration longest = std::chrono::seconds(8);
  };
  enum class State : uint8_t { kClosed, kOpen, kHalfOpen };

  Circuit() : Circuit(Times(), 0) {}
  Circuit(const Times& times, uint64_t seed);

  State state(TimePoint now) const;
  bool Admits(TimePoint now) const { return closed_ || (now >= half_open_at_ && probes_ == 0); }
  TimePoint half_open_at() const { return half_open_at_; }
  int32_t probes() const { return probes_; }  // under way: one at most

 private:
  friend class Trial;
  void Open(TimePoint now);
  void Close();

  Times times_;
  std::minstd_rand chance_;
  uint64_t openings_ = 0;
  bool closed_ = true;
  Duration length_{0};  // of the opening
  TimePoint half_open_at_;
  int32_t probes_ = 0;
};

// One try of what a circuit guards; empty, of what nothing guards.
class Trial {
 public:
  Trial() = default;
  // The circuit admits it.
  explicit Trial(std::shared_ptr<Circuit> circuit);
  Trial(Trial&& other) noexcept { *this = std::move(other); }
  Trial& operator=(Trial&& other) noexcept;
  ~Trial() { Drop(); }

  // True where that closes the circuit. It may still fail later.
  bool Worked();
  // True where that opens the circuit. The trial is over.
  bool Failed(TimePoint now);
  explicit operator bool() const { return circuit_ != nullptr; }

 private:
  bool Counts() const;
  void Drop();

  std::shared_ptr<Circuit> circuit_;
  uint64_t openings_ = 0;  // of the circuit, when it began
  bool probe_ = false;
};

// How many did, by what they guard; pair: the way of KV between two workers.
struct CircuitsOpened {
  uint64_t prefill = 0;
  uint64_t decode = 0;
  uint64_t pair = 0;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_CIRCUIT_H_
