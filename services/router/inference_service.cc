// SPDX-License-Identifier: Apache-2.0
#include "services/router/inference_service.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/rpc/bearer_token.h"
#include "common/rpc/status.h"
#include "services/router/generate_service.h"
#include "services/router/router.h"

namespace setu::router {

grpc::ServerWriteReactor<grpc::ByteBuffer>* InferenceService::Generate(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return GenerateCall::Start(router_, *context, *request);
}

grpc::ServerUnaryReactor* InferenceService::Answer(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response,
    std::function<absl::StatusOr<std::string>(const std::string&)> compute) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto caller = router_.Identify(rpc::BearerOf(context->client_metadata()));
  if (!caller.ok()) {
    reactor->Finish(rpc::ToGrpc(caller.status()));
    return reactor;
  }
  auto job = [bytes = BytesOf(*request), response, reactor, compute = std::move(compute)] {
    absl::StatusOr<std::string> answer = compute(bytes);
    if (answer.ok()) *response = BufferOf(*answer);
    reactor->Finish(rpc::ToGrpc(answer.status()));
  };
  if (!router_.Offload(*caller, std::move(job))) {
    reactor->Finish(rpc::Exhausted("too many requests at once; retry after the delay given",
                                   router_.snapshot().retry_after, *context));
  }
  return reactor;
}

grpc::ServerUnaryReactor* InferenceService::Tokenize(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request,
                                                     grpc::ByteBuffer* response) {
  auto tokenize = [this](const std::string& bytes) -> absl::StatusOr<std::string> {
    SETU_ASSIGN_OR_RETURN(TokenizeInput input, router_.validator().ValidateTokenize(bytes));
    SETU_ASSIGN_OR_RETURN(auto ids, router_.tokenizer().Encode(input.text, input.options));
    setu::v1::TokenizeResponse answer;
    answer.mutable_token_ids()->Assign(ids.begin(), ids.end());
    return answer.SerializeAsString();
  };
  return Answer(context, request, response, std::move(tokenize));
}

grpc::ServerUnaryReactor* InferenceService::Detokenize(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  auto detokenize = [this](const std::string& bytes) -> absl::StatusOr<std::string> {
    SETU_ASSIGN_OR_RETURN(auto ids, router_.validator().ValidateDetokenize(bytes));
    setu::v1::DetokenizeResponse answer;
    answer.set_text(router_.tokenizer().Decode(ids));
    return answer.SerializeAsString();
  };
  return Answer(context, request, response, std::move(detokenize));
}

grpc::ServerUnaryReactor* InferenceService::ListModels(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  auto list = [this](const std::string& bytes) -> absl::StatusOr<std::string> {
    SETU_RETURN_IF_ERROR(router_.validator().ValidateListModels(bytes));
    const ModelInfo& model = router_.model();
    const RouterSnapshot now = router_.snapshot();
    setu::v1::ListModelsResponse answer;
    setu::v1::Model& served = *answer.add_models();
    served.set_name(model.name);
    served.set_context_length(static_cast<uint32_t>(model.context_length));
    served.set_architecture(model.architecture);
    served.set_quantization(model.quantization);
    served.set_numerics(now.numerics);
    served.set_ready(now.ready);
    return answer.SerializeAsString();
  };
  return Answer(context, request, response, std::move(list));
}

}  // namespace setu::router
