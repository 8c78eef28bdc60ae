// SPDX-License-Identifier: Apache-2.0
// What came of the work that workers were given decides who gets more: each worker has a circuit,
// and so has each pair between which KV does not arrive although both may be well. On the loop's
// thread.
//
//   Trial trial = health.Try(worker);
//   health.Worked(trial, *worker);            // or Failed(trial, *worker, why)
#ifndef SETU_SERVICES_ROUTER_WORKER_HEALTH_H_
#define SETU_SERVICES_ROUTER_WORKER_HEALTH_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/logging/logger.h"
#include "common/rpc/event_loop.h"
#include "services/router/change_lines.h"
#include "services/router/circuit.h"
#include "services/router/worker.h"
#include "services/router/worker_directory.h"

namespace setu::router {

// What one placement tries.
struct Trials {
  Trial prefill;  // empty where decode computes the prompt
  Trial decode;   // empty where it had a grant before
  Trial pair;     // the way of the KV; empty unless it failed lately
};

class WorkerHealth {
 public:
  // A pair that did not fail for so long is as one that never did.
  static constexpr Duration kMemory = std::chrono::minutes(10);

  // All outlive it. `changed` runs when somebody who got no work may get some.
  WorkerHealth(rpc::EventLoop& loop, Logger& logger, const Circuit::Times& times, uint64_t seed,
               std::function<void()> changed);

  // Placement chose it, or both.
  Trial Try(const std::shared_ptr<Worker>& worker);
  Trial TryPair(const Worker& prefill, const Worker& decode);
  // Tells placement which decode workers a prefill worker does not reach now.
  void SetUnreached(const Workers& workers, std::vector<WorkerView>& prefills) const;

  void Worked(Trial& trial, Worker& worker);
  void Failed(Trial& trial, Worker& worker, const absl::Status& why);
  // KV arrived, or did not.
  void PairWorked(Trial& trial, const Worker& prefill, const Worker& decode);
  void PairFailed(Trial& trial, const Worker& prefill, const Worker& decode,
                  const absl::Status& why);
  // It has refused work for lack of room: no failure, and no new work for so long.
  void Full(Worker& worker, Duration length);

  const CircuitsOpened& opened() const { return opened_; }

 private:
  struct Pair {
    std::shared_ptr<Circuit> circuit;
    ChangeLines lines;
  };
  using Pairs = std::map<std::pair<std::string, std::string>, Pair>;  // by incarnations
  void ChangeAt(TimePoint when);
  void Tell(ChangeLines& lines, const char* state, const std::string& line);
  std::string ForHowLong(const Circuit& circuit) const;

  rpc::EventLoop& loop_;
  Logger& logger_;
  const Circuit::Times times_;
  const uint64_t seed_;
  const std::function<void()> changed_;
  Pairs pairs_;  // that failed in the last kMemory
  CircuitsOpened opened_;
  std::shared_ptr<WorkerHealth*> alive_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_WORKER_HEALTH_H_
