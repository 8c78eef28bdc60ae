// SPDX-License-Identifier: Apache-2.0
// The router's side of one Prefill call: one attempt at a prompt's KV. Destroying it stops the
// work.
#ifndef SETU_SERVICES_ROUTER_PREFILL_CLIENT_H_
#define SETU_SERVICES_ROUTER_PREFILL_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/engine/sampling_params.h"
#include "common/rpc/open_call.h"
#include "common/wire/convert.h"
#include "services/router/worker_calls.h"
#include "setu/worker/v1/prefill.pb.h"

namespace setu::router {

struct PrefillFirstToken {
  uint32_t choice = 0;
  engine::SampledToken token;
  engine::EndReason end = engine::EndReason::kNone;  // set where it ends the choice
};
struct PrefillFirstTokens {
  std::vector<PrefillFirstToken> tokens;
  uint32_t cached_tokens = 0;  // of the prompt, known and not computed
};
// The decode worker holds the KV.
struct PrefillPushed {
  uint64_t kv_bytes = 0;
  Duration tail{0};  // from the first token on
};

// The KV did not reach the decode worker; the end says why.
struct PrefillPushFailed {};

// A Status, OK or not, is the end of the call.
using PrefillEvent =
    std::variant<PrefillFirstTokens, PrefillPushed, PrefillPushFailed, absl::Status>;

struct PrefillOrder {
  uint32_t attempt = 1;
  std::string decode_address;
  std::string decode_incarnation;
  uint32_t blocks_held = 0;
  bool resumed = false;
};

class PrefillClient {
 public:
  // `on_event` runs on the loop's thread and must not destroy this.
  PrefillClient(WorkerCalls& calls, const std::string& address, const rpc::CallOptions& options,
                int32_t vocabulary, const wire::Sequence& sequence, const PrefillOrder& order,
                std::function<void(PrefillEvent)> on_event);

  // Asks for one event.
  void Read() { call_->Read(); }

 private:
  PrefillEvent FromProto(const worker::v1::PrefillResponse& response) const;

  const int32_t vocabulary_;
  std::unique_ptr<rpc::ReadableCall> call_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_PREFILL_CLIENT_H_
