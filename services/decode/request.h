// SPDX-License-Identifier: Apache-2.0
// One Decode stream's request, from the grant to its end.
#ifndef SETU_SERVICES_DECODE_REQUEST_H_
#define SETU_SERVICES_DECODE_REQUEST_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/base/clock.h"
#include "common/kv_transfer/receiver.h"
#include "common/wire/convert.h"
#include "services/decode/event.h"
#include "services/decode/grant.h"
#include "services/decode/sequence.h"

namespace setu::decode {

struct Request {
  enum class State {
    kGranted,      // Ready was sent; no manifest has come
    kReceiving,    // `lease` is bound and frames may arrive
    kWithdrawing,  // one copy still writes into `lease`; then on with `next_attempt`, or over
    kComputing,    // no KV is sent: `lease` fills chunk by chunk
    kRunning,      // committed
  };
  RequestId id = 0;
  State state = State::kGranted;
  uint32_t attempt = 0;
  std::optional<uint32_t> next_attempt;
  wire::Sequence sequence;              // as opened
  std::shared_ptr<ReplyStream> stream;  // nullptr once ended
  Grant grant;                          // what no sequence has taken
  kv::BlockLease known;                 // the first blocks of sequence.ids, until the commit
  kv::BlockLease lease;                 // the others, once their KV may come; then all of them,
                                        // as from the start where it is computed here
  kv::PrefixCache::Place place;         // once they are computed: what of them others can find
  std::shared_ptr<kv_transfer::Transfer> transfer;
  std::optional<TimePoint> heard;  // last sign of this attempt's KV; nullopt: none, or reported
  std::set<uint32_t> stopped;      // choices stopped before the commit
  uint64_t kv_bytes = 0;           // committed
  bool mixed = false;              // of it some was computed on another numeric path
  std::vector<std::unique_ptr<Sequence>> running;
};

Demand DemandOf(const wire::Sequence& sequence);

// Generated index of the token that comes with the commit; of the sequence's next one.
int32_t GeneratedBefore(const Request& request);
int32_t Generated(const Sequence& sequence);

// INVALID_ARGUMENT unless there is one first token for each choice, in the order of the choices.
absl::Status CheckFirstTokens(const Request& request,
                              const std::vector<wire::FirstToken>& first_tokens);

// Adds a sequence that goes on with `first`. The prompt's full blocks are shared by all sequences
// of the request and its last one is copied; the first sequence shall take the lease itself once
// all have forked.
Sequence& Fork(Request& request, const wire::FirstToken& first, kv::KvStorage& storage,
               kv::BlockPool& pool);

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_REQUEST_H_
