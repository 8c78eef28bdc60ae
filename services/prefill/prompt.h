// SPDX-License-Identifier: Apache-2.0
// A prompt as the loop takes it, and the way its events go back.
#ifndef SETU_SERVICES_PREFILL_PROMPT_H_
#define SETU_SERVICES_PREFILL_PROMPT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/wire/convert.h"

namespace setu::prefill {

// Who asked for a prompt. The loop's thread calls it; it must not wait.
class Reply {
 public:
  virtual ~Reply() = default;
  // `known_tokens`: at the start of the prompt, whose KV was there and not computed.
  virtual void FirstTokens(const std::vector<wire::FirstToken>& tokens, Duration queued,
                           Duration computed, int32_t known_tokens) = 0;
  virtual void Pushed(uint64_t kv_bytes, Duration tail) = 0;
  // The end says why.
  virtual void PushFailed() = 0;
  // Exactly once, last.
  virtual void End(const absl::Status& status) = 0;
};

// Validated: the ids fit the model's vocabulary, its context and the pool.
struct Prompt {
  wire::Sequence sequence;
  uint32_t attempt = 0;
  std::string decode_address;
  int32_t blocks_held = 0;  // by the decode worker already, at the start
  bool resumed = false;
  std::shared_ptr<Reply> reply;
};

}  // namespace setu::prefill

#endif  // SETU_SERVICES_PREFILL_PROMPT_H_
