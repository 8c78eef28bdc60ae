// SPDX-License-Identifier: Apache-2.0
// Whether this router is ready: once a request has come through a fitting pair, until the last such
// pair is lost. The first one is a canary of our own. Being idle or full changes nothing. On the
// loop's thread.
#ifndef SETU_SERVICES_ROUTER_READINESS_H_
#define SETU_SERVICES_ROUTER_READINESS_H_

#include <functional>
#include <optional>

#include "common/rpc/event_loop.h"

namespace setu::router {

class Readiness {
 public:
  // `start_canary` sends one through and calls CanaryEnded. `changed` runs with every change of
  // ready().
  Readiness(rpc::EventLoop& loop, std::function<void()> start_canary,
            std::function<void(bool)> changed);
  ~Readiness();

  void PairsChanged(bool has_pair);
  void CanaryEnded(bool ok);

  bool ready() const { return ready_; }

 private:
  void Set(bool ready);
  void TryCanary();

  rpc::EventLoop& loop_;
  const std::function<void()> start_canary_;
  const std::function<void(bool)> changed_;
  bool has_pair_ = false;
  bool ready_ = false;
  bool canary_runs_ = false;
  std::optional<rpc::EventLoop::Timer> again_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_READINESS_H_
