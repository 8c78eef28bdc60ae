// SPDX-License-Identifier: Apache-2.0
// A cluster of real processes on loopback, for what only processes show: kill -9, memory, signals.
//
//   ProcessCluster cluster({.model = path, .decode_workers = 2});
//   ASSERT_TRUE(cluster.WaitReady());
//   Answer answer = Generate(cluster.stub(), request);
//   cluster.Kill("decode-0");
//   cluster.Start("decode-0");           // the same address, another incarnation
#ifndef SETU_TESTS_SUPPORT_PROCESS_CLUSTER_H_
#define SETU_TESTS_SUPPORT_PROCESS_CLUSTER_H_

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "services/cli/process.h"
#include "setu/v1/inference.grpc.pb.h"

namespace setu::test {

class ProcessCluster {
 public:
  struct Options {
    std::string model;
    int prefill_workers = 1;
    int decode_workers = 1;
    // Flags added to every process of the role.
    std::vector<std::string> prefill_flags, decode_flags, router_flags;
  };
  // Starts all: "router", "prefill-0", ..., "decode-0", ...
  explicit ProcessCluster(const Options& options);

  v1::InferenceService::Stub& stub() { return *stub_; }
  const std::string& address() const { return address_; }
  // Whether ListModels said ready within the time.
  bool WaitReady(std::chrono::seconds limit = std::chrono::seconds(60));

  void Start(const std::string& name);
  void Kill(const std::string& name);  // SIGKILL, reaped
  void Signal(const std::string& name, int signal);
  // How it ended, where it did within the time.
  std::optional<std::string> WaitEnd(const std::string& name, std::chrono::seconds limit);
  pid_t pid(const std::string& name) const;
  // A gauge or counter of a process's /metrics, summed over labels; empty where it is not there.
  std::optional<double> Metric(const std::string& name, const std::string& metric) const;

 private:
  struct Member {
    std::vector<std::string> arguments;
    int metrics_port = 0;
    std::optional<cli::Process> process;
  };
  void Add(const std::string& name, const std::string& binary, const std::string& listen,
           const std::vector<std::string>& flags, const std::string& model);

  std::map<std::string, Member> members_;
  std::string address_;
  std::unique_ptr<v1::InferenceService::Stub> stub_;
};

// Body of a plain HTTP GET of the loopback; empty where it fails.
std::string HttpGet(int port, const std::string& path);

// Kilobytes of /proc/PID/status, such as VmRSS or VmHWM.
long MemoryKilobytes(pid_t pid, const std::string& field);

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_PROCESS_CLUSTER_H_
