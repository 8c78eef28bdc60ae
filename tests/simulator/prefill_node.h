// SPDX-License-Identifier: Apache-2.0
// A prefill worker: the real loop, scheduler, pool and cache of services/prefill over a model that
// pretends. What its RPC adapter (prefill_service.h) and its sender do is done here over pipes.
#ifndef SETU_TESTS_SIMULATOR_PREFILL_NODE_H_
#define SETU_TESTS_SIMULATOR_PREFILL_NODE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "services/prefill/loop.h"
#include "services/prefill/snapshot.h"
#include "setu/worker/v1/prefill.pb.h"
#include "tests/simulator/call.h"
#include "tests/simulator/load_watch.h"
#include "tests/simulator/node.h"
#include "tests/simulator/nodes.h"

namespace setu::simulator {

struct PrefillSetup {
  prefill::LoopOptions options;
  int32_t blocks = 64;
  int32_t slowness = 1;  // times what a step takes
};

class PrefillNode final : public Node {
 public:
  PrefillNode(Timeline& timeline, Network& network, const Nodes& nodes, std::string address,
              const PrefillSetup& setup);
  ~PrefillNode();

  // At its end of a pipe, when the call has arrived.
  void Accept(const worker::v1::PrefillRequest& request,
              const Answers<worker::v1::PrefillResponse>& answers);
  LoadReports& reports();
  void Drain();

  // Of its process, if it runs.
  const prefill::Snapshot* snapshot() const;

 private:
  struct Process;
  void StartProcess() override;
  void EndProcess() override;
  bool Turn() override;
  std::optional<TimePoint> next_timer() const override;

  Network& network_;
  const Nodes& nodes_;
  const PrefillSetup setup_;
  std::unique_ptr<Process> process_;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_PREFILL_NODE_H_
