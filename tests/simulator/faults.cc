// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/faults.h"

#include <memory>
#include <utility>
#include <vector>

namespace setu::simulator {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

template <typename NodeType>
NodeType& OneOf(const std::vector<std::unique_ptr<NodeType>>& nodes, Dice& dice) {
  return *nodes[dice.Below(std::ssize(nodes))];
}

}  // namespace

Node& Faults::AnyNode() {
  const std::vector<Node*>& nodes = cluster_.nodes();
  return *nodes[dice_.Below(std::ssize(nodes))];
}

Node& Faults::AnyWorker() {
  const std::vector<Node*>& nodes = cluster_.nodes();
  const auto routers = std::ssize(cluster_.routers());
  return *nodes[routers + dice_.Below(std::ssize(nodes) - routers)];
}

void Faults::Plan(TimePoint when) {
  timeline_.At(when, [this] {
    if (!healed_) Strike();
  });
}

void Faults::Strike() {
  Node &a = AnyNode(), &b = AnyWorker();
  const Duration length = dice_.Between(milliseconds(5), seconds(dice_.Chance(0.2) ? 25 : 3));
  switch (dice_.Below(8)) {
    case 0:
    case 1:
      return Kill(dice_.Chance(0.1) ? a : b);
    case 2:
      return b.Pause(length);
    case 3:
      cluster_.network().SlowDown(a, b, static_cast<double>(dice_.Between(2, 2000)));
      return Later(length, [this, &a, &b] { cluster_.network().SlowDown(a, b, 1); });
    case 4:
      return cluster_.network().Break(a, b);
    case 5:
      cluster_.network().Stop(a, b);
      if (dice_.Chance(0.7)) cluster_.network().Stop(b, a);
      return Later(length, [this, &a, &b] {
        cluster_.network().Restore(a, b);
        cluster_.network().Restore(b, a);
      });
    case 6:
      if (dice_.Chance(0.3)) return Drain(OneOf(cluster_.prefill(), dice_), length);
      return Drain(OneOf(cluster_.decode(), dice_), length);
    default:
      return Clog();
  }
}

template <typename Worker>
void Faults::Drain(Worker& worker, Duration grace) {
  drained_.push_back(&worker);
  worker.Drain();
  Later(grace, [this, &worker] { Kill(worker); });
}

void Faults::Kill(Node& node) {
  std::erase(drained_, &node);
  cluster_.network().Died(node, /*machine=*/dice_.Chance(0.2));
  node.Kill();
  Later(dice_.Between(milliseconds(1), seconds(5)), [&node] { node.Start(); });
}

void Faults::Clog() {
  std::vector<std::pair<const Node*, const Node*>> links;
  for (const Node* a : cluster_.nodes()) {
    for (const Node* b : cluster_.nodes()) {
      if (a != b && dice_.Chance(0.6)) links.emplace_back(a, b);
    }
  }
  dice_.Shuffle(links);
  const Duration step = dice_.Between(milliseconds(1), milliseconds(300));
  Duration when{0};
  for (const auto& [a, b] : links) {
    Later(when += step, [this, a = a, b = b] { cluster_.network().Stop(*a, *b); });
  }
  dice_.Shuffle(links);
  for (const auto& [a, b] : links) {
    Later(when += step, [this, a = a, b = b] { cluster_.network().Restore(*a, *b); });
  }
}

void Faults::Heal() {
  timeline_.Tell("heal", "");
  healed_ = true;
  cluster_.network().Heal();
  const std::vector<Node*> drained = drained_;
  for (Node* node : drained) Kill(*node);
  for (Node* node : cluster_.nodes()) node->Start();
}

}  // namespace setu::simulator
