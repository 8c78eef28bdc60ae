// SPDX-License-Identifier: Apache-2.0
// setu.v1.InferenceService: from RPC to the router and back, and nothing else. Methods are raw, so
// that the validator decides what a malformed message is told.
#ifndef SETU_SERVICES_ROUTER_INFERENCE_SERVICE_H_
#define SETU_SERVICES_ROUTER_INFERENCE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "setu/v1/inference.grpc.pb.h"

namespace setu::router {

class Router;

using RawInferenceService = setu::v1::InferenceService::WithRawCallbackMethod_Generate<
    setu::v1::InferenceService::WithRawCallbackMethod_Tokenize<
        setu::v1::InferenceService::WithRawCallbackMethod_Detokenize<
            setu::v1::InferenceService::WithRawCallbackMethod_ListModels<
                setu::v1::InferenceService::Service>>>>;

class InferenceService final : public RawInferenceService {
 public:
  // The router must outlive the service and every call.
  explicit InferenceService(Router& router) : router_(router) {}

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Generate(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;

 private:
  // Computes a serialized answer in the pool.
  grpc::ServerUnaryReactor* Answer(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response,
      std::function<absl::StatusOr<std::string>(const std::string& request)> compute);

  Router& router_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_INFERENCE_SERVICE_H_
