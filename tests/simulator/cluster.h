// SPDX-License-Identifier: Apache-2.0
// Routers, workers and what joins them; and what must hold in them, at each moment and at rest.
#ifndef SETU_TESTS_SIMULATOR_CLUSTER_H_
#define SETU_TESTS_SIMULATOR_CLUSTER_H_

#include <memory>
#include <vector>

#include "tests/simulator/judge.h"
#include "tests/simulator/network.h"
#include "tests/simulator/scenario.h"
#include "tests/simulator/timeline.h"

namespace setu::simulator {

class Cluster {
 public:
  // Starts all of it. What is passed by reference outlives it.
  Cluster(Timeline& timeline, Dice& dice, const Scenario& scenario);
  ~Cluster();

  Network& network() { return network_; }
  std::vector<std::unique_ptr<RouterNode>>& routers() { return routers_; }
  std::vector<std::unique_ptr<PrefillNode>>& prefill() { return prefill_; }
  std::vector<std::unique_ptr<DecodeNode>>& decode() { return decode_; }
  // All nodes: routers, prefill, decode.
  const std::vector<Node*>& nodes() const { return all_; }

  void CheckAlways(Judge& judge) const;
  // Nobody asks for anything any more, and has not for a while.
  void CheckAtRest(Judge& judge) const;

 private:
  void CheckCircuitsAtRest(const router::Workers& workers, Judge& judge) const;

  const Scenario& scenario_;
  Network network_;
  Nodes nodes_;
  std::vector<std::unique_ptr<RouterNode>> routers_;
  std::vector<std::unique_ptr<PrefillNode>> prefill_;
  std::vector<std::unique_ptr<DecodeNode>> decode_;
  std::vector<Node*> all_;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_CLUSTER_H_
