// SPDX-License-Identifier: Apache-2.0
// All that reaches the loop from other threads, by its inbox.
#ifndef SETU_SERVICES_DECODE_EVENT_H_
#define SETU_SERVICES_DECODE_EVENT_H_

#include <cstdint>
#include <memory>
#include <variant>

#include "common/kv_transfer/receiver.h"
#include "common/wire/convert.h"
#include "services/decode/reply_stream.h"

namespace setu::decode {

// One Decode stream; never used twice.
using RequestId = uint64_t;

struct Opened {
  RequestId request = 0;
  uint32_t attempt = 0;
  wire::Sequence sequence;
  bool prefill_here = false;
  bool promise_all = false;
  std::shared_ptr<ReplyStream> stream;
};
struct Retried {
  RequestId request = 0;
  uint32_t attempt = 0;
};
struct ChoiceStopped {
  RequestId request = 0;
  uint32_t choice = 0;
};
struct TokensDelivered {
  RequestId request = 0;
  uint32_t choice = 0;
  uint32_t next_index = 0;
};
// The router cancelled or is gone.
struct StreamLost {
  RequestId request = 0;
};
struct DrainAsked {};
// End everything now.
struct StopAsked {};

using Event = std::variant<Opened, Retried, ChoiceStopped, TokensDelivered, StreamLost, DrainAsked,
                           StopAsked, kv_transfer::TransferStarted, kv_transfer::TransferCommitted,
                           kv_transfer::TransferFailed, kv_transfer::TransferWithdrawn>;

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_EVENT_H_
