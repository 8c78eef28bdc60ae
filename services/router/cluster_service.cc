// SPDX-License-Identifier: Apache-2.0
#include "services/router/cluster_service.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "common/rpc/bearer_token.h"
#include "common/rpc/status.h"
#include "services/router/router.h"

namespace setu::router {
namespace {

const char* StateName(const WorkerDirectory::Listing& listing) {
  switch (listing.state) {
    case WorkerState::kUsable:
      if (listing.circuit == Circuit::State::kClosed) return "usable";
      return listing.circuit == Circuit::State::kOpen ? "failed" : "on trial";
    case WorkerState::kUnreachable:
      return "unreachable";
    case WorkerState::kAwaited:
      return "loading";
    case WorkerState::kNotReady:
      return "not ready";
    case WorkerState::kDraining:
      return "draining";
    case WorkerState::kMisfit:
      return "misfit";
  }
  return "";
}

const char* LimitName(worker::v1::Limit limit, bool prompts_wait) {
  switch (limit) {
    case worker::v1::LIMIT_IDLE:
      return prompts_wait ? "starved" : "idle";
    case worker::v1::LIMIT_STARVED:
      return "starved";
    case worker::v1::LIMIT_LINK_BOUND:
      return "link-bound";
    case worker::v1::LIMIT_OVERHEAD_BOUND:
      return "overhead-bound";
    case worker::v1::LIMIT_MEMORY_BOUND:
      return "memory-bound";
    case worker::v1::LIMIT_COMPUTE_BOUND:
      return "compute-bound";
    default:
      return "";
  }
}

void ShowLoad(const worker::v1::WatchLoadResponse& load, bool prompts_wait,
              setu::v1::ClusterWorker& shown) {
  shown.set_limit(LimitName(load.roofline().limit(), prompts_wait));
  shown.set_bandwidth_share(load.roofline().bandwidth_share());
  shown.set_arithmetic_share(load.roofline().arithmetic_share());
  shown.set_cache_resident(load.roofline().cache_resident());
  shown.set_tokens_per_second(load.tokens_per_second());
  shown.set_running(load.running());
  shown.set_running_max(load.running_max());
  shown.set_blocks_total(load.blocks_total());
  shown.set_blocks_free(load.blocks_free());
  shown.set_queued(load.queued());
  shown.set_queued_tokens(load.queued_tokens());
  shown.set_kv_bytes(load.kv_bytes());
  shown.set_link_bytes_per_second(load.roofline().link_bytes_per_second());
  shown.set_prefix_tokens_asked(load.prefix_tokens_asked());
  shown.set_prefix_tokens_known(load.prefix_tokens_known());
}

void ShowDecisions(const RouterSnapshot& now, setu::v1::Decisions& shown) {
  shown.set_finished(now.finished);
  shown.set_failed(now.failed);
  shown.set_cancelled(now.cancelled);
  shown.set_refused(now.refused_invalid + now.refused_full + now.refused_late + now.refused_quota +
                    now.refused_draining + now.refused_no_workers);
  shown.set_resumes(now.resumes.total());
  shown.set_retries(now.retries);
  shown.set_local_prefills(now.local_prefills);
}

}  // namespace

void ShowWorkers(const std::vector<WorkerDirectory::Listing>& workers, size_t queued,
                 setu::v1::GetClusterResponse& answer) {
  std::map<worker::v1::Role, int> numbers;
  for (const WorkerDirectory::Listing& listing : workers) {
    setu::v1::ClusterWorker& shown = *answer.add_workers();
    shown.set_name(absl::StrCat(RoleName(listing.role), "-", numbers[listing.role]++));
    shown.set_state(StateName(listing));
    if (listing.worker) ShowLoad(listing.worker->load, queued > 0, shown);
  }
}

grpc::ServerUnaryReactor* ClusterService::GetCluster(grpc::CallbackServerContext* context,
                                                     const setu::v1::GetClusterRequest*,
                                                     setu::v1::GetClusterResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto caller = router_.Identify(rpc::BearerOf(context->client_metadata()));
  if (!caller.ok()) {
    reactor->Finish(rpc::ToGrpc(caller.status()));
    return reactor;
  }
  const RouterSnapshot now = router_.snapshot();
  response->set_model(router_.model().name);
  response->set_numerics(now.numerics);
  response->set_running(static_cast<uint32_t>(now.running));
  response->set_queued(static_cast<uint32_t>(now.queue_length));
  ShowDecisions(now, *response->mutable_decisions());
  auto show = [response, reactor, queued = now.queue_length](const auto& workers) {
    ShowWorkers(workers, queued, *response);
    reactor->Finish(grpc::Status::OK);
  };
  if (!router_.LookAtWorkers(std::move(show))) {
    reactor->Finish(rpc::Exhausted("the router is behind; retry later", now.retry_after, *context));
  }
  return reactor;
}

}  // namespace setu::router
