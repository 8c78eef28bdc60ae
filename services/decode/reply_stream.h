// SPDX-License-Identifier: Apache-2.0
// The router's open Decode stream as the loop speaks to it. Nothing here waits: what the router
// does not read is bounded by the unsent-token rule. After End nothing is sent.
#ifndef SETU_SERVICES_DECODE_REPLY_STREAM_H_
#define SETU_SERVICES_DECODE_REPLY_STREAM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/engine/sampling_params.h"

namespace setu::decode {

class ReplyStream {
 public:
  virtual ~ReplyStream() = default;
  // `blocks_held`: at the start of the prompt, which need not be sent.
  virtual void SendReady(uint32_t attempt, int32_t blocks_held) = 0;
  virtual void SendCommitted(uint32_t attempt, uint64_t kv_bytes) = 0;
  virtual void SendToken(uint32_t choice, int32_t index, const engine::SampledToken& token) = 0;
  virtual void SendEnded(uint32_t choice, engine::EndReason reason, int32_t generated) = 0;
  virtual void SendPreempted(uint32_t choice) = 0;
  virtual void SendTransferStalled(uint32_t attempt) = 0;
  virtual void SendDraining() = 0;
  // The last call; what was sent before still goes out.
  virtual void End(const absl::Status& status) = 0;
};

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_REPLY_STREAM_H_
