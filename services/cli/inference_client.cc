// SPDX-License-Identifier: Apache-2.0
#include "services/cli/inference_client.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel_factory.h"
#include "common/rpc/status.h"
#include "services/cli/text_check.h"

namespace setu::cli {
namespace {

void SetDeadline(grpc::ClientContext& context, Duration deadline) {
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::microseconds>(deadline));
}

absl::Status Explain(const grpc::Status& status, const std::string& address) {
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return absl::UnavailableError(absl::StrCat(status.error_message(), " (router at ", address,
                                               "; is it running? try: setu up MODEL)"));
  }
  return rpc::ToAbsl(status);
}

}  // namespace

InferenceClient::InferenceClient(const std::string& address) : address_(address) {
  channel_ = rpc::MakeTcpChannelFactory()->Connect(address);
  stub_ = v1::InferenceService::NewStub(channel_);
}

absl::Status InferenceClient::Generate(const v1::GenerateRequest& request, Duration deadline,
                                       const OnResponse& on_response) {
  SETU_RETURN_IF_ERROR(CheckText(request));
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  const auto reader = stub_->Generate(&context, request);
  for (v1::GenerateResponse response; reader->Read(&response);) on_response(response);
  return Explain(reader->Finish(), address_);
}

absl::StatusOr<std::vector<v1::Model>> InferenceClient::ListModels(Duration deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  v1::ListModelsResponse response;
  const grpc::Status status = stub_->ListModels(&context, {}, &response);
  if (!status.ok()) return Explain(status, address_);
  return std::vector<v1::Model>(response.models().begin(), response.models().end());
}

absl::StatusOr<std::vector<uint32_t>> InferenceClient::Tokenize(const std::string& text,
                                                                Duration deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  v1::TokenizeRequest request;
  request.set_text(text);
  SETU_RETURN_IF_ERROR(CheckText(request));
  v1::TokenizeResponse response;
  const grpc::Status status = stub_->Tokenize(&context, request, &response);
  if (!status.ok()) return Explain(status, address_);
  return std::vector<uint32_t>(response.token_ids().begin(), response.token_ids().end());
}

absl::StatusOr<std::string> InferenceClient::Detokenize(const std::vector<uint32_t>& ids,
                                                        Duration deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  v1::DetokenizeRequest request;
  request.mutable_token_ids()->Assign(ids.begin(), ids.end());
  v1::DetokenizeResponse response;
  const grpc::Status status = stub_->Detokenize(&context, request, &response);
  if (!status.ok()) return Explain(status, address_);
  return response.text();
}

bool InferenceClient::Ready(Duration deadline) {
  // Waiting keeps the connection going; a call that fails at once leaves it to a poller that looks
  // every five seconds.
  const auto limit = std::chrono::duration_cast<std::chrono::microseconds>(deadline);
  if (!channel_->WaitForConnected(std::chrono::system_clock::now() + limit)) return false;
  const auto models = ListModels(deadline);
  return models.ok() && !models->empty() && models->front().ready();
}

}  // namespace setu::cli
