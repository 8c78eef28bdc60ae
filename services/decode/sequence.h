// SPDX-License-Identifier: Apache-2.0
// One choice of a request in the in-flight batch.
#ifndef SETU_SERVICES_DECODE_SEQUENCE_H_
#define SETU_SERVICES_DECODE_SEQUENCE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/engine/sampling_params.h"
#include "common/kv/prefix_cache.h"
#include "services/decode/grant.h"

namespace setu::decode {

struct Request;

struct Sequence {
  Request* request = nullptr;  // owns this; the scheduler does not look into it
  uint32_t choice = 0;
  std::vector<engine::TokenId> ids;       // prompt, then generated; the last one has no KV yet
  Grant grant;                            // what is left of its budget
  kv::BlockLease lease;                   // its block table
  kv::PrefixCache::Place place;           // how much of it others can find
  int32_t delivered = 0;                  // one past the last generated index that left the router
  std::optional<TimePoint> paused_since;  // set: skipped, its reader is too far behind
};

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_SEQUENCE_H_
