// SPDX-License-Identifier: Apache-2.0
// Whether this router is ready: once a token has come through a fitting pair, until the last such
// pair is lost. A client's token proves it as well as one of the canary, a request of our own.
// Being idle or full changes nothing. On the loop's thread.
//
//   const Readiness::Spell spell = readiness.spell();   // when a request gets its workers
//   readiness.TokenCame(spell);                         // when decode sends it a token
#ifndef SETU_SERVICES_ROUTER_READINESS_H_
#define SETU_SERVICES_ROUTER_READINESS_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "common/rpc/event_loop.h"

namespace setu::router {

class Readiness {
 public:
  // One after another, each from the coming of a first fitting pair to the loss of the last.
  enum class Spell : uint64_t {};

  // `start_canary` sends one through and calls CanaryEnded. `changed` runs with every change of
  // ready().
  Readiness(rpc::EventLoop& loop, std::function<void()> start_canary,
            std::function<void(bool)> changed);
  ~Readiness();

  void PairsChanged(bool has_pair);
  // Of a request that got its workers in `spell`: an earlier one's says nothing of today's pairs.
  void TokenCame(Spell spell);
  // Another one follows after a pause where this one brought no token.
  void CanaryEnded();

  Spell spell() const { return Spell{spells_}; }
  bool ready() const { return ready_; }

 private:
  void Set(bool ready);
  void TryCanary();

  rpc::EventLoop& loop_;
  const std::function<void()> start_canary_;
  const std::function<void(bool)> changed_;
  bool has_pair_ = false;
  uint64_t spells_ = 0;
  bool ready_ = false;
  bool canary_runs_ = false;
  std::optional<rpc::EventLoop::Timer> again_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_READINESS_H_
