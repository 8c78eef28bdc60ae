// SPDX-License-Identifier: Apache-2.0
// What befalls a cluster, drawn and timed: kills and starts, pauses, links that stand still, slow
// down or break, drains, and the swizzle-clog: links stop one after another and come back in
// another order.
#ifndef SETU_TESTS_SIMULATOR_FAULTS_H_
#define SETU_TESTS_SIMULATOR_FAULTS_H_

#include <vector>

#include "common/base/clock.h"
#include "tests/simulator/cluster.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/timeline.h"

namespace setu::simulator {

class Faults {
 public:
  // All outlive it.
  Faults(Timeline& timeline, Dice& dice, Cluster& cluster)
      : timeline_(timeline), dice_(dice), cluster_(cluster) {}

  // One more at that time, with what follows from it.
  void Plan(TimePoint when);
  // All that is away comes back, all that stands still goes on. What was planned does nothing.
  void Heal();

 private:
  void Strike();
  void Kill(Node& node);
  template <typename Worker>
  void Drain(Worker& worker, Duration grace);
  void Clog();
  template <typename Event>
  void Later(Duration after, Event event) {
    timeline_.After(after, [this, event] {
      if (!healed_) event();
    });
  }
  Node& AnyNode();
  Node& AnyWorker();

  Timeline& timeline_;
  Dice& dice_;
  Cluster& cluster_;
  std::vector<Node*> drained_;  // and not started again since
  bool healed_ = false;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_FAULTS_H_
