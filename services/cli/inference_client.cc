// SPDX-License-Identifier: Apache-2.0
#include "services/cli/inference_client.h"

#include <grpc/health/v1/health.grpc.pb.h>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/rpc/bearer_token.h"
#include "common/rpc/channel_factory.h"
#include "common/rpc/status.h"
#include "services/cli/text_check.h"

namespace setu::cli {

InferenceClient::InferenceClient(const RouterTarget& target)
    : address_(target.address), token_(target.token) {
  channel_ = rpc::MakeTcpChannelFactory()->Connect(address_);
  stub_ = v1::InferenceService::NewStub(channel_);
  cluster_ = v1::ClusterService::NewStub(channel_);
}

void InferenceClient::Prepare(grpc::ClientContext& context, Duration deadline) const {
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::microseconds>(deadline));
  rpc::Authorize(context, token_);
}

// What a router says of itself is left as it is: while it can say something, the channel is ready.
absl::Status InferenceClient::Explain(const grpc::Status& status) const {
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the router at ", address_, " knows ", token_.empty() ? "nobody" : "no such",
        token_.empty() ? " without a token" : " token", "; name a file of one: --token-file FILE"));
  }
  const bool connected = channel_->GetState(false) == GRPC_CHANNEL_READY;
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE || connected) return rpc::ToAbsl(status);
  return absl::UnavailableError(absl::StrCat("no router answers at ", address_,
                                             "; is it running? try: setu up MODEL (",
                                             status.error_message(), ")"));
}

absl::Status InferenceClient::Generate(const v1::GenerateRequest& request, Duration deadline,
                                       const OnResponse& on_response, const std::stop_token& stop) {
  SETU_RETURN_IF_ERROR(CheckText(request));
  grpc::ClientContext context;
  Prepare(context, deadline);
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  const auto reader = stub_->Generate(&context, request);
  bool began = false;
  for (v1::GenerateResponse response; reader->Read(&response); began = true) on_response(response);
  const grpc::Status end = reader->Finish();
  if (end.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::DeadlineExceededError(
        absl::StrCat("no end within --deadline ", absl::FormatDuration(absl::FromChrono(deadline)),
                     "; allow more, or fewer --max-tokens"));
  }
  if (!began || end.error_code() != grpc::StatusCode::UNAVAILABLE) return Explain(end);
  return absl::UnavailableError(absl::StrCat("the answer broke off: ", end.error_message(),
                                             "; ask again (router at ", address_, ")"));
}

absl::StatusOr<std::vector<v1::Model>> InferenceClient::ListModels(Duration deadline) {
  grpc::ClientContext context;
  Prepare(context, deadline);
  v1::ListModelsResponse response;
  const grpc::Status status = stub_->ListModels(&context, {}, &response);
  if (!status.ok()) return Explain(status);
  return std::vector<v1::Model>(response.models().begin(), response.models().end());
}

absl::StatusOr<std::vector<uint32_t>> InferenceClient::Tokenize(const std::string& text,
                                                                Duration deadline) {
  grpc::ClientContext context;
  Prepare(context, deadline);
  v1::TokenizeRequest request;
  request.set_text(text);
  SETU_RETURN_IF_ERROR(CheckText(request));
  v1::TokenizeResponse response;
  const grpc::Status status = stub_->Tokenize(&context, request, &response);
  if (!status.ok()) return Explain(status);
  return std::vector<uint32_t>(response.token_ids().begin(), response.token_ids().end());
}

absl::StatusOr<std::string> InferenceClient::Detokenize(const std::vector<uint32_t>& ids,
                                                        Duration deadline) {
  grpc::ClientContext context;
  Prepare(context, deadline);
  v1::DetokenizeRequest request;
  request.mutable_token_ids()->Assign(ids.begin(), ids.end());
  v1::DetokenizeResponse response;
  const grpc::Status status = stub_->Detokenize(&context, request, &response);
  if (!status.ok()) return Explain(status);
  return response.text();
}

absl::StatusOr<v1::GetClusterResponse> InferenceClient::GetCluster(Duration deadline) {
  grpc::ClientContext context;
  Prepare(context, deadline);
  v1::GetClusterResponse response;
  const grpc::Status status = cluster_->GetCluster(&context, {}, &response);
  if (!status.ok()) return Explain(status);
  return response;
}

bool InferenceClient::Ready(Duration deadline) {
  // Waiting keeps the connection going; a call that fails at once leaves it to a poller that looks
  // every five seconds.
  const auto limit = std::chrono::duration_cast<std::chrono::microseconds>(deadline);
  if (!channel_->WaitForConnected(std::chrono::system_clock::now() + limit)) return false;
  grpc::ClientContext context;
  Prepare(context, deadline);
  using grpc::health::v1::Health;
  grpc::health::v1::HealthCheckResponse health;
  return Health::NewStub(channel_)->Check(&context, {}, &health).ok() &&
         health.status() == grpc::health::v1::HealthCheckResponse::SERVING;
}

}  // namespace setu::cli
