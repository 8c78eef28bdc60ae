// SPDX-License-Identifier: Apache-2.0
// The setu.worker.v1.WorkerService of both kinds of worker: Describe, WatchLoad, Drain.
//
//   WorkerService service(description, [&] { loop.BeginDrain(); });
//   service.Publish(report);     // the loop's thread, after a step or change
//   service.EndWatches();        // before the server shuts down
#ifndef SETU_COMMON_WORKER_WORKER_SERVICE_H_
#define SETU_COMMON_WORKER_WORKER_SERVICE_H_

#include <functional>
#include <memory>
#include <span>

#include "common/kv/prefix_cache.h"
#include "setu/worker/v1/worker.grpc.pb.h"

namespace setu::worker {

class WorkerService final : public v1::WorkerService::CallbackService {
 public:
  // `drain` is called from a gRPC thread, once per Drain call.
  WorkerService(v1::DescribeResponse description, std::function<void()> drain);
  ~WorkerService() override;

  // Keeps the newest report and sends it to the watchers: the first at once, later ones at most
  // one per 20 ms, at least one per second. Fills sequence, incarnation and, for each watcher, the
  // prefixes that changed since its last report. Never blocks.
  void Publish(v1::WatchLoadResponse report, std::span<const kv::PrefixChange> changes = {});
  void EndWatches();

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeRequest* request,
                                     v1::DescribeResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchLoadResponse>* WatchLoad(
      grpc::CallbackServerContext* context, const v1::WatchLoadRequest* request) override;
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const v1::DrainRequest* request,
                                  v1::DrainResponse* response) override;

 private:
  class Watch;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace setu::worker

#endif  // SETU_COMMON_WORKER_WORKER_SERVICE_H_
