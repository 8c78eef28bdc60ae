// SPDX-License-Identifier: Apache-2.0
// The router: one thread owns queue, directory, claims and all request flows; a small pool
// validates and tokenises before. Others see it by its snapshots.
//
//   Router router(options, std::move(tokenizer), std::move(model), *channels, clock, logger,
//                 observer);
//   auto server = rpc::Server::Start({}, router.services(), std::move(listener), logger);
//   router.OnReadiness([&](bool ready) { server->SetServing(ready); });
//   ...
//   router.BeginDrain();
//   if (!router.WaitDrained(std::chrono::seconds(60))) router.EndRequests();
//   server->Shutdown(std::chrono::seconds(1));   // while the router still answers
//   router.Stop();
#ifndef SETU_SERVICES_ROUTER_ROUTER_H_
#define SETU_SERVICES_ROUTER_ROUTER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/logging/logger.h"
#include "common/rpc/channel_factory.h"
#include "common/rpc/event_loop.h"
#include "common/tokenizer/tokenizer.h"
#include "services/router/callers.h"
#include "services/router/client_sink.h"
#include "services/router/dispatcher.h"
#include "services/router/model_info.h"
#include "services/router/origin.h"
#include "services/router/readiness.h"
#include "services/router/request_flow.h"
#include "services/router/request_tracer.h"
#include "services/router/snapshot.h"
#include "services/router/tenant.h"
#include "services/router/tokenising_pool.h"
#include "services/router/validator.h"
#include "services/router/worker_directory.h"

namespace setu::router {

class ClusterService;
class InferenceService;

struct RouterOptions {
  DirectoryOptions workers;
  Callers* callers = nullptr;       // null: everybody, as one tenant; must outlive the router
  RequestTracer* tracer = nullptr;  // null: no traces; likewise
  AdmissionQueue::Config queue;
  FlowOptions flow;
  Duration default_deadline = std::chrono::minutes(10);  // where the client sets none
  size_t inbox_events = 4096;
  int tokenising_threads = 2;
  size_t tokenising_jobs = 1024;
};

class Router {
 public:
  // Starts its threads. What is passed by reference must outlive it.
  Router(const RouterOptions& options, std::unique_ptr<tokenizer::Tokenizer> tokenizer,
         ModelInfo model, rpc::ChannelFactory& channels, const Clock& clock, Logger& logger,
         FlowObserver& observer);
  ~Router();  // as Stop

  // To register with one server, which must be shut down before Stop.
  std::vector<grpc::Service*> services();
  // Any thread; before anything is ready. Runs on the owner's thread, at once and on every change.
  void OnReadiness(std::function<void(bool ready)> changed);
  RouterSnapshot snapshot() const;

  // Any thread. No new requests; those admitted go on. May be called again.
  void BeginDrain();
  // False where some still run after `grace`.
  bool WaitDrained(Duration grace);
  // What still runs ends UNAVAILABLE. Any thread.
  void EndRequests();
  // As EndRequests, and ends the threads. May be called again.
  void Stop();

  // --- For the service; any thread ---
  struct Call {
    Origin origin;
    Caller caller;
    TimePoint deadline;
    std::shared_ptr<ClientSink> sink;
    // On the owner's thread, where the request was admitted.
    std::function<void(const std::shared_ptr<RequestFlow>&)> admitted;
  };
  // Whose token it is. UNAUTHENTICATED where it is nobody's.
  absl::StatusOr<Caller> Identify(const std::optional<std::string>& token) const;
  // The sink hears of everything, refusals too. `bytes`: a serialized GenerateRequest.
  void Generate(std::string bytes, Call call);
  // Of a request whose token is nobody's: what Identify said.
  void RefuseStranger(Origin origin, std::shared_ptr<ClientSink> sink, absl::Status why);
  // Runs it off the owner's thread; false where too much of this tenant's waits.
  [[nodiscard]] bool Offload(const Caller& caller, TokenisingPool::Job job) {
    return pool_->Run(caller.tenant->number(), std::move(job));
  }
  // Runs `look` on the owner's thread; false where too much waits.
  [[nodiscard]] bool LookAtWorkers(
      std::function<void(const std::vector<WorkerDirectory::Listing>&)> look);
  const Validator& validator() const { return validator_; }
  const tokenizer::Tokenizer& tokenizer() const { return *tokenizer_; }
  const ModelInfo& model() const { return model_; }
  const RouterOptions& options() const { return options_; }
  rpc::EventLoop& loop() { return loop_; }

 private:
  struct Owned;  // what only the owner's thread touches

  Limits LimitsNow() const;
  void Refuse(const Call& call, uint64_t RouterSnapshot::*cause, absl::Status why);
  void EndRefused(const Origin& origin, const FlowEnd& end, ClientSink& sink);
  void Admit(Call call, std::shared_ptr<Visit> visit, ValidRequest request);
  void StartCanary();
  void CanaryEnded(const absl::Status& status);
  Arrival ArrivalOf(const Call& call, const ValidRequest& request, RequestTracer* tracer);
  void WorkersChanged();
  void WorkersReported();
  void Ended(uint64_t id, const FlowEnd& end);
  void Publish();

  const RouterOptions options_;
  const std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
  const ModelInfo model_;
  const Validator validator_;
  rpc::ChannelFactory& channels_;
  const Clock& clock_;
  Logger& logger_;
  FlowObserver& observer_;
  const std::shared_ptr<Tenant> everybody_;  // without callers
  const std::string router_id_;              // random: uuids are unique among routers

  rpc::EventLoop loop_;
  std::unique_ptr<Owned> owned_;
  std::atomic<bool> draining_ = false;
  std::atomic<uint64_t> departures_ = 0;  // from the queue
  std::atomic<int32_t> pool_tokens_ = 0;  // 0: not known
  mutable std::mutex snapshot_mutex_;
  std::condition_variable snapshot_changed_;
  RouterSnapshot snapshot_;

  std::unique_ptr<InferenceService> service_;
  std::unique_ptr<ClusterService> cluster_service_;
  std::unique_ptr<TokenisingPool> pool_;
  std::thread owner_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_ROUTER_H_
