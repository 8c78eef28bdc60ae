// SPDX-License-Identifier: Apache-2.0
#include "services/router/decode_client.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace setu::router {

using worker::v1::DecodeRequest;
using worker::v1::DecodeResponse;

DecodeClient::DecodeClient(WorkerCalls& calls, const std::string& address,
                           const rpc::CallOptions& options, int32_t vocabulary,
                           std::function<void(DecodeEvent)> on_event)
    : vocabulary_(vocabulary) {
  rpc::StreamEvents<DecodeResponse> events;
  events.read = [this, on_event](DecodeResponse& response) { on_event(FromProto(response)); };
  events.done = [on_event](const absl::Status& status) { on_event(status); };
  call_ = calls.Decode(address, options, std::move(events));
}

bool DecodeClient::Open(const wire::Sequence& sequence, const DecodeOrder& order) {
  DecodeRequest request;
  *request.mutable_open()->mutable_sequence() = wire::ToProto(sequence);
  request.mutable_open()->set_attempt(order.attempt);
  request.mutable_open()->set_prefill_here(order.prefill_here);
  request.mutable_open()->set_promise_all(order.promise_all);
  return call_->Write(std::move(request));
}

bool DecodeClient::Retry(uint32_t attempt) {
  DecodeRequest request;
  request.mutable_retry()->set_attempt(attempt);
  return call_->Write(std::move(request));
}

bool DecodeClient::StopChoice(uint32_t choice) {
  DecodeRequest request;
  request.mutable_stop_choice()->set_choice(choice);
  return call_->Write(std::move(request));
}

bool DecodeClient::Delivered(uint32_t choice, int32_t next_index) {
  DecodeRequest request;
  request.mutable_delivered()->set_choice(choice);
  request.mutable_delivered()->set_next_index(static_cast<uint32_t>(next_index));
  return call_->Write(std::move(request));
}

DecodeEvent DecodeClient::FromProto(const DecodeResponse& response) const {
  switch (response.event_case()) {
    case DecodeResponse::kReady:
      return DecodeReady{response.ready().attempt(), response.ready().blocks_held()};
    case DecodeResponse::kCommitted:
      return DecodeCommitted{response.committed().kv_bytes()};
    case DecodeResponse::kTokens: {
      DecodeTokens out;
      out.choice = response.tokens().choice();
      out.first_index = static_cast<int32_t>(response.tokens().first_index());
      for (const auto& token : response.tokens().tokens()) {
        absl::StatusOr<engine::SampledToken> sampled = wire::FromProto(token, vocabulary_);
        if (!sampled.ok()) return absl::InternalError(sampled.status().message());
        out.tokens.push_back(*std::move(sampled));
      }
      return out;
    }
    case DecodeResponse::kEnded:
      return DecodeEnded{response.ended().choice(), wire::FromProto(response.ended().reason()),
                         static_cast<int32_t>(response.ended().generated())};
    case DecodeResponse::kPreempted:
      return DecodePreempted{response.preempted().choice()};
    case DecodeResponse::kTransferStalled:
      return DecodeStalled{response.transfer_stalled().attempt()};
    case DecodeResponse::kDraining:
      return DecodeDraining{};
    case DecodeResponse::EVENT_NOT_SET:
      break;
  }
  return absl::InternalError("DecodeResponse.event: none that this router knows");
}

}  // namespace setu::router
