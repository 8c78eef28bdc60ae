// SPDX-License-Identifier: Apache-2.0
// A whole cluster in one process: real router, prefill and decode workers, joined by gRPC's
// in-process transport. A test's reference, and what its faults are done to.
//
//   Cluster cluster({.model = WriteTinyModel(dir), .decode_workers = 2});
//   ASSERT_TRUE(cluster.WaitReady());
//   Answer answer = Generate(cluster.stub(), GreedyText("Hi", 20));
//   cluster.Kill("decode-0");
//   EXPECT_EQ(cluster.Quiesce(), "");        // nothing held, nothing running
#ifndef SETU_TESTS_SUPPORT_CLUSTER_H_
#define SETU_TESTS_SUPPORT_CLUSTER_H_

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/engine/model_runner.h"
#include "common/logging/logger.h"
#include "common/rpc/server.h"
#include "kernels/device.h"
#include "services/decode/worker.h"
#include "services/prefill/worker.h"
#include "services/router/router.h"
#include "setu/v1/inference.grpc.pb.h"
#include "tests/support/in_process_network.h"

namespace setu::test {

class Cluster {
 public:
  struct Options {
    std::string model;
    int prefill_workers = 1;
    int decode_workers = 1;
    // model_path is filled in; the numeric path is that of worker processes, unless they are told
    // another; 1 MiB of KV and one thread suit the tiny model.
    engine::RunnerOptions prefill_runner = {
        .cpu = {.path = *kernels::ParseNumericPath("auto"), .threads = 1},
        .kv_memory_bytes = 1 << 20};
    engine::RunnerOptions decode_runner = prefill_runner;
    std::map<std::string, int64_t> kv_memory_bytes;  // of decode workers that have another pool
    prefill::WorkerOptions prefill;
    size_t kv_shm_bytes = 0;  // 0: KV goes by gRPC alone
    decode::WorkerOptions decode;
    router::RouterOptions router;
  };
  explicit Cluster(const Options& options);
  ~Cluster();

  v1::InferenceService::Stub& stub() { return *stub_; }
  router::Router& router() { return *router_; }
  prefill::Worker& prefill(int i = 0);
  decode::Worker& decode(int i = 0);

  bool WaitReady(std::chrono::seconds limit = std::chrono::seconds(30));
  // "prefill-0", "decode-1": its streams break and nobody listens at its address any more.
  void Kill(const std::string& name);
  // Starts one that was killed, as another incarnation.
  void Start(const std::string& name);
  // Waits until no worker holds a block or runs a request. What is still held after the limit,
  // else empty.
  std::string Quiesce(std::chrono::seconds limit = std::chrono::seconds(5));

 private:
  template <typename Worker>
  struct Member {
    std::unique_ptr<Worker> worker;
    std::unique_ptr<rpc::Server> server;
  };
  std::unique_ptr<engine::ModelRunner> Load(engine::RunnerOptions options) const;
  void StartPrefill(const std::string& name);
  void StartDecode(const std::string& name);
  std::string Held() const;

  const Options options_;
  const SteadyClock clock_;
  NullLogger logger_;
  router::FlowObserver observer_;
  InProcessNetwork network_;
  std::map<std::string, Member<prefill::Worker>> prefill_;
  std::map<std::string, Member<decode::Worker>> decode_;
  std::unique_ptr<router::Router> router_;
  std::unique_ptr<rpc::Server> router_server_;
  std::unique_ptr<v1::InferenceService::Stub> stub_;
};

// The tokens of the request alone in a cluster of one pair: what every other cluster must give.
std::vector<uint32_t> ReferenceIds(Cluster::Options options, const v1::GenerateRequest& request);

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_CLUSTER_H_
