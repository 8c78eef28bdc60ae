// SPDX-License-Identifier: Apache-2.0
// The public API as the command line calls it: blocking, one call per thread.
//
//   InferenceClient client({.address = "127.0.0.1:50051"});
//   absl::Status end = client.Generate(request, minutes(10), [](const GenerateResponse& r) {...});
#ifndef SETU_SERVICES_CLI_INFERENCE_CLIENT_H_
#define SETU_SERVICES_CLI_INFERENCE_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "services/cli/router_access.h"
#include "setu/v1/cluster.grpc.pb.h"
#include "setu/v1/inference.grpc.pb.h"

namespace setu::cli {

class InferenceClient {
 public:
  // Connects lazily; an address where nobody listens shows as UNAVAILABLE in the first call.
  explicit InferenceClient(const RouterTarget& target);

  using OnResponse = std::function<void(const v1::GenerateResponse&)>;
  // Returns when the stream has ended. Errors say what to do about them; a text that is not valid
  // UTF-8 is INVALID_ARGUMENT before anything is sent. A stop ends the call as CANCELLED.
  absl::Status Generate(const v1::GenerateRequest& request, Duration deadline,
                        const OnResponse& on_response, const std::stop_token& stop = {});
  absl::StatusOr<std::vector<v1::Model>> ListModels(Duration deadline);
  absl::StatusOr<std::vector<uint32_t>> Tokenize(const std::string& text, Duration deadline);
  absl::StatusOr<std::string> Detokenize(const std::vector<uint32_t>& ids, Duration deadline);
  absl::StatusOr<v1::GetClusterResponse> GetCluster(Duration deadline);
  // Whether the router says within the deadline that a model is ready to be asked. Needs no token.
  bool Ready(Duration deadline);

 private:
  absl::Status Explain(const grpc::Status& status) const;
  void Prepare(grpc::ClientContext& context, Duration deadline) const;
  std::string address_;
  std::string token_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::InferenceService::Stub> stub_;
  std::unique_ptr<v1::ClusterService::Stub> cluster_;
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_INFERENCE_CLIENT_H_
