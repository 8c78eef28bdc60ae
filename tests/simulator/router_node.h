// SPDX-License-Identifier: Apache-2.0
// A router: the real directory, dispatcher and request flows of services/router on their own event
// loop, which this node turns. Requests come as its front would admit them.
#ifndef SETU_TESTS_SIMULATOR_ROUTER_NODE_H_
#define SETU_TESTS_SIMULATOR_ROUTER_NODE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "services/router/client_sink.h"
#include "services/router/request_flow.h"
#include "services/router/valid_request.h"
#include "services/router/worker_directory.h"
#include "tests/services/router/byte_tokenizer.h"
#include "tests/simulator/network.h"
#include "tests/simulator/node.h"
#include "tests/simulator/nodes.h"

namespace setu::simulator {

struct RouterSetup {
  router::AdmissionQueue::Config queue;
  router::FlowOptions flow;
  bool local_prefill = false;
};

// What a router has in hand. All zero at rest.
struct RouterFigures {
  size_t queued = 0;
  int32_t running = 0;
  router::Claimed claimed;  // on all workers in sight
};

class RouterNode final : public Node {
 public:
  RouterNode(Timeline& timeline, Network& network, const Nodes& nodes, std::string address,
             const RouterSetup& setup);
  ~RouterNode();

  // `sink` hears of everything, refusals too, unless the router dies. `admitted` as in Router.
  void Generate(router::Arrival arrival, router::ValidRequest request,
                std::shared_ptr<router::ClientSink> sink,
                std::function<void(std::weak_ptr<router::RequestFlow>)> admitted);

  // Of its process, if it runs.
  std::optional<RouterFigures> Figures() const;
  const router::Workers* workers() const;
  const router::FlowCounts* counts() const;

 private:
  struct Process;
  void StartProcess() override;
  void EndProcess() override;
  bool Turn() override;
  std::optional<TimePoint> next_timer() const override;

  Network& network_;
  const Nodes& nodes_;
  const RouterSetup setup_;
  const router::ByteTokenizer tokenizer_;
  std::unique_ptr<Process> process_;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_ROUTER_NODE_H_
