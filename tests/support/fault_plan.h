// SPDX-License-Identifier: Apache-2.0
// One misfortune at one place of a request's way through a ProcessCluster: a message between
// router, prefill worker and decode worker that has not arrived yet.
//
//   FaultPlan plan;
//   ProcessCluster cluster({.model = path, .prefill_workers = 2, .watch = plan.watch()});
//   plan.Arm({.at = FaultPlan::MessageOf("PushKv", 2), .role = "prefill",
//             .act = [&](const std::string& worker) { cluster.Kill(worker); }});
//   Answer answer = Generate(cluster.stub(), request);
//   std::string killed = plan.Disarm();         // "prefill-1", or empty: the place never came
#ifndef SETU_TESTS_SUPPORT_FAULT_PLAN_H_
#define SETU_TESTS_SUPPORT_FAULT_PLAN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/process_cluster.h"

namespace setu::test {

class FaultPlan {
 public:
  using Message = GrpcProxy::Message;
  using Place = std::function<bool(const Message&)>;
  struct Fault {
    Place at;
    std::string
        role;  // whose worker is hit: "prefill" or "decode", the one that serves the request
    std::function<void(const std::string& worker)> act;
    bool arrives = false;  // the message at the place
    // What becomes of all after it in its direction of its call.
    GrpcProxy::Verdict rest = GrpcProxy::Verdict::kCut;
    std::vector<Place> lost;  // messages that never arrive, until the fault has come
  };

  // Messages of callers, and of workers, by their number in the call.
  static Place MessageOf(const std::string& method, int index);
  static Place AnswerOf(const std::string& method, int index);
  // The answer of a decode worker with this generated index, cut behind it.
  static Place Token(int32_t index);
  static Place Commit();     // of a push
  static Place Committed();  // the word of it that decode sends to the router,
  static Place Pushed();     // and to the prefill worker

  auto watch() {
    return
        [this](const std::string& worker, const Message& message) { return On(worker, message); };
  }
  // For the next request; one at a time.
  void Arm(Fault fault);
  // The worker that was hit, if any; nothing happens from now on.
  std::string Disarm();

 private:
  using Stream = std::tuple<std::string, uint64_t, bool>;  // worker, call, its answers
  GrpcProxy::Verdict On(const std::string& worker, const Message& message);

  std::mutex mutex_;
  std::optional<Fault> fault_;
  std::map<std::string, std::string> serving_;  // by role, the worker called last
  std::string hit_;
  Stream struck_;  // where the place was
};

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_FAULT_PLAN_H_
