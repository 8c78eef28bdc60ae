// SPDX-License-Identifier: Apache-2.0
// setu.v1.ClusterService: how the workers do, without their addresses.
#ifndef SETU_SERVICES_ROUTER_CLUSTER_SERVICE_H_
#define SETU_SERVICES_ROUTER_CLUSTER_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <vector>

#include "services/router/worker_directory.h"
#include "setu/v1/cluster.grpc.pb.h"

namespace setu::router {

class Router;

// What the answer says of the workers. `queued` prompts in the router's queue make an idle worker a
// starved one: the worker itself cannot know of them.
void ShowWorkers(const std::vector<WorkerDirectory::Listing>& workers, size_t queued,
                 setu::v1::GetClusterResponse& answer);

class ClusterService final : public setu::v1::ClusterService::CallbackService {
 public:
  // The router must outlive the service and every call.
  explicit ClusterService(Router& router) : router_(router) {}

  grpc::ServerUnaryReactor* GetCluster(grpc::CallbackServerContext* context,
                                       const setu::v1::GetClusterRequest* request,
                                       setu::v1::GetClusterResponse* response) override;

 private:
  Router& router_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_CLUSTER_SERVICE_H_
