// SPDX-License-Identifier: Apache-2.0
// The router's side of a Decode stream, in the router's own types. The stream is the lease: while
// this object lives the worker holds room, and destroying it frees everything there.
//
//   DecodeClient decode(calls, address, options, vocabulary,
//                       [&](DecodeEvent event) { mailbox.Put(std::move(event)); });
//   if (!decode.Open(sequence, /*attempt=*/1)) ...
//   decode.Read();   // one event, then ask again; after an absl::Status nothing comes
#ifndef SETU_SERVICES_ROUTER_DECODE_CLIENT_H_
#define SETU_SERVICES_ROUTER_DECODE_CLIENT_H_

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
#include "setu/worker/v1/decode.pb.h"

namespace setu::router {

// Room is promised; the prompt's first `blocks_held` blocks need not be sent.
struct DecodeReady {
  uint32_t attempt = 0;
  uint32_t blocks_held = 0;
};
// The answer to Retry where the KV had arrived after all.
struct DecodeCommitted {
  uint64_t kv_bytes = 0;
};
struct DecodeTokens {
  uint32_t choice = 0;
  int32_t first_index = 0;  // generated index of the first
  std::vector<engine::SampledToken> tokens;
};
struct DecodeEnded {
  uint32_t choice = 0;
  engine::EndReason reason = engine::EndReason::kNone;
  int32_t generated = 0;  // tokens in all
};
struct DecodePreempted {
  uint32_t choice = 0;
};
struct DecodeStalled {
  uint32_t attempt = 0;
};
struct DecodeDraining {};

// A Status, OK or not, is the end of the stream.
using DecodeEvent = std::variant<DecodeReady, DecodeCommitted, DecodeTokens, DecodeEnded,
                                 DecodePreempted, DecodeStalled, DecodeDraining, absl::Status>;

struct DecodeOrder {
  uint32_t attempt = 1;
  bool prefill_here = false;  // no KV will be sent
  bool promise_all = false;   // blocks for all of the answer
};

class DecodeClient {
 public:
  // `on_event` runs on the loop's thread and must not destroy this. A message that breaks the
  // protocol becomes the end: INTERNAL, naming the field.
  DecodeClient(WorkerCalls& calls, const std::string& address, const rpc::CallOptions& options,
               int32_t vocabulary, std::function<void(DecodeEvent)> on_event);

  // Each is false where the worker takes no more: the end is about to be read.
  [[nodiscard]] bool Open(const wire::Sequence& sequence, const DecodeOrder& order);
  [[nodiscard]] bool Retry(uint32_t attempt);
  [[nodiscard]] bool StopChoice(uint32_t choice);
  [[nodiscard]] bool Delivered(uint32_t choice, int32_t next_index);
  void Read() { call_->Read(); }

 private:
  DecodeEvent FromProto(const worker::v1::DecodeResponse& response) const;

  const int32_t vocabulary_;
  std::unique_ptr<rpc::DuplexCall<worker::v1::DecodeRequest>> call_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_DECODE_CLIENT_H_
