// SPDX-License-Identifier: Apache-2.0
// The KV blocks of one attempt on their way to a decode worker, as the step loop that computes them
// sees it; GrpcPush sends them.
//
//   std::shared_ptr<Push> push = start_push(address, plan, [](const PushResult& result) { ... });
//   push->Final(layer, blocks);     // the step loop, after each layer of each chunk
//   push->Commit(first_tokens);     // after the last chunk; `done` says whether decode took it
//
// A push has no deadline: whoever started it cancels it when it takes too long. Its blocks must
// stay leased until `done` was called.
#ifndef SETU_COMMON_KV_TRANSFER_PUSH_H_
#define SETU_COMMON_KV_TRANSFER_PUSH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/engine/runner.h"
#include "common/wire/convert.h"

namespace setu::kv_transfer {

struct PushPlan {
  std::string uuid;
  uint32_t attempt = 0;
  engine::RunnerFingerprint fingerprint;
  int32_t token_count = 0;
  uint64_t ids_digest = 0;          // wire::IdsDigest of the tokens
  std::vector<kv::BlockId> blocks;  // the table of all token_count tokens
  int32_t first_block = 0;          // earlier ones are held by the receiver already
};

struct PushResult {
  absl::Status status;     // OK: the receiver committed; CANCELLED after Cancel
  uint64_t kv_bytes = 0;   // that went out,
  uint64_t shm_bytes = 0;  // of them, through shared memory
  // Why the receiver has not taken the memory offered; empty: it has, or there was no offer.
  std::string shm_refused;
  Duration sending{};  // while there was something to send, to the receiver's answer
};

class Push {
 public:
  virtual ~Push() = default;
  // The first `blocks` blocks of the table will not change any more in `layer`; never fewer than
  // was said before. All of `layers x blocks` must be final for the commit to go out.
  virtual void Final(int32_t layer, int32_t blocks) = 0;
  virtual void Commit(std::span<const wire::FirstToken> first_tokens) = 0;
  // Ends the push soon, unless it has ended.
  virtual void Cancel() = 0;
};

// Called exactly once, from any thread.
using PushDone = std::function<void(const PushResult&)>;
// To the decode worker at `address`.
using StartPush =
    std::function<std::shared_ptr<Push>(const std::string& address, PushPlan plan, PushDone done)>;

}  // namespace setu::kv_transfer

#endif  // SETU_COMMON_KV_TRANSFER_PUSH_H_
