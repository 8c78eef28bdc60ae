// SPDX-License-Identifier: Apache-2.0
// A cluster of real processes, for what only processes show: kill -9, memory, signals. They are on
// the loopback, or each in a network namespace of its own (lan.h).
//
//   ProcessCluster cluster({.model = path, .decode_workers = 2});
//   ASSERT_TRUE(cluster.WaitReady());
//   Answer answer = Generate(cluster.stub(), request);
//   cluster.Kill("decode-0");
//   cluster.Start("decode-0");           // the same address, another incarnation
#ifndef SETU_TESTS_SUPPORT_PROCESS_CLUSTER_H_
#define SETU_TESTS_SUPPORT_PROCESS_CLUSTER_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "services/cli/held_port.h"
#include "services/cli/process.h"
#include "setu/v1/inference.grpc.pb.h"
#include "tests/support/grpc_proxy.h"
#include "tests/support/lan.h"
#include "tests/support/vitals.h"

namespace setu::test {

class ProcessCluster {
 public:
  struct Options {
    std::string model;
    int prefill_workers = 1;
    int decode_workers = 1;
    // Flags added to every process of the role.
    std::vector<std::string> prefill_flags, decode_flags, router_flags;
    // Where set, everybody reaches each worker through a proxy, and this sees what passes.
    std::function<GrpcProxy::Verdict(const std::string& worker, const GrpcProxy::Message&)> watch;
    // Where set, says where everybody reaches a worker that listens at an address.
    std::function<std::string(const std::string& worker, const std::string& address)> reach;
    // Where set, each process is on the host of its name, which this network has; its client and
    // the metrics of all are reached there, whatever happens to the links. It outlives the cluster.
    const Lan* lan = nullptr;
  };
  // Starts all: "router", "prefill-0", ..., "decode-0", ...
  explicit ProcessCluster(const Options& options);

  v1::InferenceService::Stub& stub() { return *stub_; }
  const std::string& address() const { return address_; }
  // Where a process listens itself, whatever is before it.
  const std::string& address(const std::string& name) const { return members_.at(name).listen; }
  // Whether ListModels said ready within the time.
  bool WaitReady(std::chrono::seconds limit = std::chrono::seconds(60));

  void Start(const std::string& name);
  // Starts a worker that was killed, once the router has missed it, and waits until it counts on it
  // again. False where either takes more than five seconds.
  bool StartAgain(const std::string& name);
  // Waits until the router counts on every worker of that role, for five seconds at most.
  bool WaitSeen(const std::string& role) const;
  void Kill(const std::string& name);  // SIGKILL, reaped
  void Signal(const std::string& name, int signal);
  // How it ended, where it did within the time.
  std::optional<std::string> WaitEnd(const std::string& name, std::chrono::seconds limit);
  pid_t pid(const std::string& name) const;
  // A gauge or counter of a process's /metrics, summed over the samples that have the label, such
  // as `reason="full"`, where one is given; empty where it is not there.
  std::optional<double> Metric(const std::string& name, const std::string& metric,
                               const std::string& label = "") const;
  // Waits until no process runs a request, holds a block, counts a request that has no end, or has
  // grown since it was first at rest. What is still so after the limit, else empty.
  std::string Quiesce(std::chrono::seconds limit = std::chrono::seconds(5));

 private:
  struct Member {
    std::vector<std::string> arguments;
    std::string listen;
    int metrics_port = 0;
    std::optional<cli::Process> process;
  };
  // Where that process is.
  void Run(const std::string& name, absl::FunctionRef<void()> act) const;
  rpc::Descriptor SocketAt(const std::string& name) const;
  std::string MetricsPage(const std::string& name) const;
  void Add(const std::string& name, const std::string& binary, const std::string& listen,
           const std::vector<std::string>& flags, const std::string& model);
  std::string AddWorker(const std::string& name, const std::string& binary,
                        const std::vector<std::string>& flags, const Options& options);
  std::string HoldAddress(const std::string& host = "127.0.0.1");
  std::shared_ptr<grpc::Channel> Connect() const;
  std::string Held() const;
  std::string Grown();
  bool Seen(const std::string& role) const;

  const Lan* const lan_;
  std::vector<cli::HeldPort> ports_;
  std::vector<std::unique_ptr<GrpcProxy>> proxies_;
  std::map<std::string, Member> members_;
  std::map<pid_t, Vitals> at_rest_;  // each process when it was first at rest
  std::string address_;
  std::unique_ptr<v1::InferenceService::Stub> stub_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_PROCESS_CLUSTER_H_
