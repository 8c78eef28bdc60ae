// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/cluster.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace setu::simulator {
namespace {

void Check(const decode::Snapshot& now, const DecodeSetup& setup, const Node& node, Judge& judge) {
  const auto expect = [&](bool right, const char* what) {
    judge.Expect(right, [&] { return absl::StrCat(node.address(), ": ", what); });
  };
  expect(now.blocks_held >= 0 && now.blocks_promised >= 0 &&
             now.blocks_held + now.blocks_promised <= now.blocks_total,
         "held and promised blocks exceed the pool");
  expect(now.blocks_held + now.blocks_cached <= now.blocks_total, "cached blocks exceed the pool");
  expect(now.admitted == now.finished + now.failed + now.cancelled + uint64_t(now.running),
         "requests do not add up");
  expect(now.sequences >= 0 && now.sequences <= setup.options.max_running, "too many sequences");
  expect(now.running >= 0 && now.running <= setup.options.max_running, "too many requests");
}

void Check(const prefill::Snapshot& now, const PrefillSetup& setup, const Node& node,
           Judge& judge) {
  const auto expect = [&](bool right, const char* what) {
    judge.Expect(right, [&] { return absl::StrCat(node.address(), ": ", what); });
  };
  expect(now.admitted == now.finished + now.failed + now.cancelled + uint64_t(now.running) +
                             uint64_t(now.queued),
         "prompts do not add up");
  expect(now.queued >= 0 && now.queued <= 2 * setup.options.queue, "too many prompts wait");
  expect(now.blocks_free >= 0 && now.blocks_free <= now.blocks_total, "free blocks");
  expect(now.blocks_cached <= now.blocks_free, "cached blocks are free");
}

template <typename NodeType, typename... Arguments>
void Add(std::vector<std::unique_ptr<NodeType>>& nodes, std::vector<Node*>& all,
         Arguments&&... arguments) {
  nodes.push_back(std::make_unique<NodeType>(std::forward<Arguments>(arguments)...));
  all.push_back(nodes.back().get());
}

// Of tries of one that failed, those under way.
void CheckProbes(const std::vector<router::Workers::Entry>& workers, int32_t most, Judge& judge) {
  for (const router::Workers::Entry& entry : workers) {
    judge.Expect(entry.worker->circuit.probes() <= most, [&] {
      return absl::StrCat(entry.worker->address, ": ", entry.worker->circuit.probes(),
                          " probes, may be ", most);
    });
  }
}

}  // namespace

Cluster::Cluster(Timeline& timeline, Dice& dice, const Scenario& scenario)
    : scenario_(scenario), network_(timeline, dice) {
  for (int32_t i = 0; i < scenario.routers; ++i) {
    Add(routers_, all_, timeline, network_, nodes_, absl::StrCat("router-", i), scenario.router);
  }
  for (const PrefillSetup& setup : scenario.prefill) {
    Add(prefill_, all_, timeline, network_, nodes_, absl::StrCat("127.0.1.", prefill_.size(), ":1"),
        setup);
    nodes_.prefill[prefill_.back()->address()] = prefill_.back().get();
  }
  for (const DecodeSetup& setup : scenario.decode) {
    Add(decode_, all_, timeline, absl::StrCat("127.0.2.", decode_.size(), ":1"), setup);
    nodes_.decode[decode_.back()->address()] = decode_.back().get();
  }
  for (Node* node : all_) node->Start();
}

Cluster::~Cluster() {
  for (Node* node : all_) node->Kill();
}

void Cluster::CheckAlways(Judge& judge) const {
  for (size_t i = 0; i < decode_.size(); ++i) {
    if (const decode::Snapshot* now = decode_[i]->snapshot()) {
      Check(*now, scenario_.decode[i], *decode_[i], judge);
    }
  }
  for (size_t i = 0; i < prefill_.size(); ++i) {
    if (const prefill::Snapshot* now = prefill_[i]->snapshot()) {
      Check(*now, scenario_.prefill[i], *prefill_[i], judge);
    }
  }
  for (const auto& node : routers_) {
    const router::Workers* workers = node->workers();
    if (workers == nullptr) continue;
    CheckProbes(workers->prefill, 1, judge);
    CheckProbes(workers->decode, 1, judge);
  }
}

void Cluster::CheckCircuitsAtRest(const router::Workers& workers, Judge& judge) const {
  CheckProbes(workers.prefill, 0, judge);
  CheckProbes(workers.decode, 0, judge);
  const bool all_were_used =
      scenario_.prefill.size() == 1 && scenario_.decode.size() == 1 && !workers.local_prefill;
  if (!all_were_used) return;
  for (const auto* entries : {&workers.prefill, &workers.decode}) {
    const router::Worker& worker = *entries->front().worker;
    judge.Expect(worker.circuit.state(TimePoint()) == router::Circuit::State::kClosed,
                 [&] { return worker.address + " works, and is not trusted"; });
  }
}

void Cluster::CheckAtRest(Judge& judge) const {
  for (const auto& node : decode_) {
    const decode::Snapshot& now = *node->snapshot();
    judge.Expect(now.running == 0 && now.sequences == 0 && now.transfers == 0 && now.prompts == 0 &&
                     now.blocks_held == 0 && now.blocks_promised == 0,
                 [&] {
                   return absl::StrCat(node->address(), " is not at rest: running ", now.running,
                                       ", sequences ", now.sequences, ", transfers ", now.transfers,
                                       ", prompts ", now.prompts, ", held ", now.blocks_held,
                                       ", promised ", now.blocks_promised);
                 });
  }
  for (const auto& node : prefill_) {
    const prefill::Snapshot& now = *node->snapshot();
    judge.Expect(now.running == 0 && now.queued == 0 && now.blocks_free == now.blocks_total, [&] {
      return absl::StrCat(node->address(), " is not at rest: running ", now.running, ", queued ",
                          now.queued, ", free ", now.blocks_free, " of ", now.blocks_total);
    });
  }
  for (const auto& node : routers_) {
    CheckCircuitsAtRest(*node->workers(), judge);
    const RouterFigures now = *node->Figures();
    judge.Expect(now.queued == 0 && now.running == 0 && now.claimed.blocks == 0 &&
                     now.claimed.sequences == 0 && now.claimed.tokens == 0 &&
                     now.claimed.prompts == 0,
                 [&] {
                   return absl::StrCat(node->address(), " is not at rest: queued ", now.queued,
                                       ", running ", now.running, ", claimed blocks ",
                                       now.claimed.blocks, ", tokens ", now.claimed.tokens);
                 });
  }
}

}  // namespace setu::simulator
