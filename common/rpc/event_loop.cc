// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/event_loop.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "common/base/check.h"

namespace setu::rpc {

EventLoop::EventLoop(const Clock& clock, size_t capacity) : clock_(clock), inbox_(capacity) {}

EventLoop::~EventLoop() { SETU_CHECK(holds_ == 0, "a loop outlives the calls it started"); }

EventLoop::Timer EventLoop::At(TimePoint when, Closure closure) {
  Timer timer(when, next_timer_++);
  timers_.emplace(timer, std::move(closure));
  return timer;
}

void EventLoop::Run() {
  while (running_ || holds_ > 0) {
    inbox_.WaitUntil(NextWake());
    Turn();
  }
  while (RunPosted()) {
  }
}

bool EventLoop::Turn() {
  const bool posted = RunPosted();
  return RunDueTimers() || posted;
}

std::optional<TimePoint> EventLoop::next_timer() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first.first;
}

bool EventLoop::RunPosted() {
  std::vector<Closure>& posted = inbox_.Drain();
  for (Closure& closure : posted) closure();
  return !posted.empty();
}

void EventLoop::Stop() {
  PostCompletion([this] { running_ = false; });
}

bool EventLoop::RunDueTimers() {
  const TimePoint now = clock_.Now();
  bool any = false;
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    auto due = timers_.extract(timers_.begin());
    due.mapped()();
    any = true;
  }
  return any;
}

// The inbox waits by the steady clock; the timers go by ours, which a test may turn by hand.
std::optional<TimePoint> EventLoop::NextWake() const {
  if (timers_.empty()) return std::nullopt;
  const Duration until = timers_.begin()->first.first - clock_.Now();
  return SteadyClock().Now() + std::min<Duration>(until, std::chrono::hours(1));
}

}  // namespace setu::rpc
