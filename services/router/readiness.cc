// SPDX-License-Identifier: Apache-2.0
#include "services/router/readiness.h"

#include <chrono>
#include <utility>

namespace setu::router {
namespace {

constexpr Duration kCanaryPause = std::chrono::milliseconds(500);

}  // namespace

Readiness::Readiness(rpc::EventLoop& loop, std::function<void()> start_canary,
                     std::function<void(bool)> changed)
    : loop_(loop), start_canary_(std::move(start_canary)), changed_(std::move(changed)) {}

Readiness::~Readiness() {
  if (again_) loop_.Cancel(*again_);
}

void Readiness::PairsChanged(bool has_pair) {
  if (!std::exchange(has_pair_, has_pair) && has_pair) ++spells_;
  if (!has_pair) Set(false);
  TryCanary();
}

void Readiness::TokenCame(Spell spell) {
  if (!ready_ && has_pair_ && spell == this->spell()) Set(true);
}

void Readiness::CanaryEnded() {
  canary_runs_ = false;
  if (ready_) return;
  again_ = loop_.At(loop_.clock().Now() + kCanaryPause, [this] {
    again_.reset();
    TryCanary();
  });
}

void Readiness::TryCanary() {
  if (!has_pair_ || ready_ || again_ || std::exchange(canary_runs_, true)) return;
  start_canary_();
}

void Readiness::Set(bool ready) {
  if (std::exchange(ready_, ready) != ready) changed_(ready);
}

}  // namespace setu::router
