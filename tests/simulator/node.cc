// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/node.h"

#include <algorithm>
#include <utility>

namespace setu::simulator {

void Node::Start() {
  if (up_) return;
  timeline_.Tell("start", address_);
  up_ = true;
  ++life_;
  StartProcess();
  Wake();
}

void Node::Kill() {
  if (!up_) return;
  timeline_.Tell("kill", address_);
  up_ = false;
  died_ = timeline_.Now();
  held_.clear();
  next_turn_.reset();
  paused_until_ = busy_until_ = TimePoint();
  EndProcess();
}

TimePoint Node::LivedUntil(uint64_t life) const {
  if (up_ && life == life_) return TimePoint::max();
  const bool last = up_ ? life + 1 == life_ : life == life_;
  return last ? died_ : TimePoint();
}

void Node::Pause(Duration time) {
  if (!up_) return;
  timeline_.Tell("pause", address_);
  paused_until_ = std::max(paused_until_, timeline_.Now() + time);
  timeline_.At(paused_until_, [this, life = life_] {
    if (life == life_ && up_) Resume();
  });
}

void Node::Resume() {
  if (paused()) return;
  std::deque<Timeline::Event> held = std::exchange(held_, {});
  for (Timeline::Event& event : held) event();
  Wake();
}

void Node::Receive(Timeline::Event event) {
  if (!up_) return;
  if (paused()) {
    held_.push_back(std::move(event));
  } else {
    event();
  }
}

void Node::At(TimePoint when, Timeline::Event event) {
  timeline_.At(when, [this, life = life_, event = std::move(event)]() mutable {
    if (life == life_) Receive(std::move(event));
  });
}

void Node::WakeAt(TimePoint when) {
  if (!up_) return;
  when = std::max({when, busy_until_, paused_until_, timeline_.Now()});
  if (next_turn_ && *next_turn_ <= when) return;
  next_turn_ = when;
  timeline_.At(when, [this, when, life = life_] {
    if (life == life_ && next_turn_ == when) TakeTurn();
  });
}

void Node::TakeTurn() {
  next_turn_.reset();
  if (paused()) return;  // Resume wakes it
  const bool again = Turn();
  busy_until_ = Now();
  spent_ = Duration::zero();
  if (again) return Wake();
  if (const auto timer = next_timer()) WakeAt(*timer);
}

}  // namespace setu::simulator
