// SPDX-License-Identifier: Apache-2.0
// A machine of the cluster with its one process: it can be killed, started again and paused. What
// the process does in a turn takes virtual time, and its clock shows it.
//
//   node.Wake();                          // a turn as soon as it may run
//   node.Receive([&] { inbox.Push(...); node.Wake(); });   // what arrives waits while it is paused
#ifndef SETU_TESTS_SIMULATOR_NODE_H_
#define SETU_TESTS_SIMULATOR_NODE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "tests/simulator/timeline.h"

namespace setu::simulator {

class Node : public Clock {
 public:
  Node(Timeline& timeline, std::string address)
      : timeline_(timeline), address_(std::move(address)) {}

  const std::string& address() const { return address_; }
  // The process' own clock: further than the timeline while it is in a turn.
  TimePoint Now() const override { return timeline_.Now() + spent_; }
  bool up() const { return up_; }
  // Another one with each start.
  uint64_t life() const { return life_; }
  // Far ahead where it is still that one. Of those before the last: long ago.
  TimePoint LivedUntil(uint64_t life) const;

  void Start();
  void Kill();
  void Pause(Duration time);
  void Wake() { WakeAt(timeline_.Now()); }
  void WakeAt(TimePoint when);
  void Receive(Timeline::Event event);
  // A timer of the process: it ends with it, and waits while it is paused.
  void At(TimePoint when, Timeline::Event event);

 protected:
  ~Node() = default;  // not by way of this
  virtual void StartProcess() = 0;
  virtual void EndProcess() = 0;
  // False: nothing is to do before `next_timer`, or an event.
  virtual bool Turn() = 0;
  virtual std::optional<TimePoint> next_timer() const = 0;

  void Spend(Duration time) { spent_ += time; }
  Timeline& timeline() const { return timeline_; }

 private:
  void TakeTurn();
  void Resume();
  bool paused() const { return timeline_.Now() < paused_until_; }

  Timeline& timeline_;
  const std::string address_;
  bool up_ = false;
  uint64_t life_ = 0;
  Duration spent_{0};
  TimePoint died_;  // the last time
  TimePoint busy_until_;
  TimePoint paused_until_;
  std::deque<Timeline::Event> held_;    // arrived while paused
  std::optional<TimePoint> next_turn_;  // planned
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_NODE_H_
