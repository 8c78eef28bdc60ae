// SPDX-License-Identifier: Apache-2.0
#include "services/router/prefill_client.h"

#include <chrono>
#include <utility>

#include "absl/status/statusor.h"

namespace setu::router {

using worker::v1::PrefillResponse;

PrefillClient::PrefillClient(WorkerCalls& calls, const std::string& address,
                             const rpc::CallOptions& options, int32_t vocabulary,
                             const wire::Sequence& sequence, const PrefillOrder& order,
                             std::function<void(PrefillEvent)> on_event)
    : vocabulary_(vocabulary) {
  worker::v1::PrefillRequest request;
  *request.mutable_sequence() = wire::ToProto(sequence);
  request.set_attempt(order.attempt);
  request.set_decode_address(order.decode_address);
  request.set_decode_incarnation(order.decode_incarnation);
  request.set_blocks_held(order.blocks_held);
  request.set_resumed(order.resumed);
  rpc::StreamEvents<PrefillResponse> events;
  events.read = [this, on_event](PrefillResponse& response) { on_event(FromProto(response)); };
  events.done = [on_event](const absl::Status& status) { on_event(status); };
  call_ = calls.Prefill(address, options, request, std::move(events));
}

PrefillEvent PrefillClient::FromProto(const PrefillResponse& response) const {
  switch (response.event_case()) {
    case PrefillResponse::kFirstTokens: {
      PrefillFirstTokens out;
      out.cached_tokens = response.first_tokens().cached_tokens();
      for (const auto& first : response.first_tokens().tokens()) {
        absl::StatusOr<engine::SampledToken> sampled = wire::FromProto(first.token(), vocabulary_);
        if (!sampled.ok()) return absl::InternalError(sampled.status().message());
        PrefillFirstToken token;
        token.choice = first.choice();
        token.token = *std::move(sampled);
        token.end = wire::FromProto(first.end());
        out.tokens.push_back(std::move(token));
      }
      return out;
    }
    case PrefillResponse::kPushed:
      return PrefillPushed{response.pushed().kv_bytes(),
                           std::chrono::microseconds(response.pushed().tail_us())};
    case PrefillResponse::kPushFailed:
      return PrefillPushFailed{};
    case PrefillResponse::EVENT_NOT_SET:
      break;
  }
  return absl::InternalError("PrefillResponse.event: none that this router knows");
}

}  // namespace setu::router
