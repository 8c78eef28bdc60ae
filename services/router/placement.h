// SPDX-License-Identifier: Apache-2.0
// Where a prompt goes: a pure function of what it needs and of how the workers stand. Among the
// pairs that fit and have room it takes the least predicted time: what prefill has ahead and what
// it must compute, by its rate; what must be sent, by the rate of that worker's link; and the steps
// of decode's batch. Local prefill, where it may be, must be sooner although it holds up every
// sequence that runs there. Equals are told apart by the request's salt, so that several routers do
// not all choose the same. The choice of prefill does not depend on decode, so that a look at each
// worker is enough: decode is the best that this one reaches, and only who reaches nobody with room
// makes way for the next.
//
//   Placement p = Place({.prompt_tokens = 900, .tokens_to_come = 256}, prefills, decodes);
//   if (p.kind == Placement::Kind::kPair) Open(decodes[p.decode]);
#ifndef SETU_SERVICES_ROUTER_PLACEMENT_H_
#define SETU_SERVICES_ROUTER_PLACEMENT_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace setu::router {

// What this router has given to a worker and not got back. Counted at once, where the worker's own
// report comes later.
struct Claimed {
  int64_t blocks = 0;     // decode: of open streams
  int32_t sequences = 0;  // decode: open streams' choices
  int64_t tokens = 0;     // prefill: of prompts without a first token
  int32_t prompts = 0;    // prefill
};

struct WorkerView {
  size_t fit = 0;                 // workers may be paired where this is equal
  bool avoid = false;             // it gets nothing now: it failed, or was full a moment ago
  std::vector<size_t> unreached;  // prefill: decode workers, by index, that its KV does not reach
  Claimed claimed;
  int32_t block_tokens = 16;
  int64_t grant_output_tokens = 256;  // decode: promised to each choice, if that many are to come
  int64_t resume_watermark = 0;  // decode: blocks that a resume leaves free, unless it is alone
  // As last reported.
  int64_t blocks_total = 0;
  int64_t blocks_free = 0;
  int32_t running = 0;
  int32_t running_max = 0;
  int32_t queued = 0;
  int64_t queued_tokens = 0;
  double tokens_per_second = 0;      // 0: not known yet
  double link_bytes_per_second = 0;  // prefill: at which it sends KV; 0: not known yet
  // Decode: of prompts that it computes itself, beside its batch; 0: it does not.
  double prompt_tokens_per_second = 0;
  int32_t known_blocks = 0;  // of this prompt's start, as far as its load stream says
  int64_t block_bytes = 0;   // of KV
};

struct PlacementRequest {
  int64_t prompt_tokens = 0;   // all to prefill: of a resume, also what was generated
  int64_t tokens_to_come = 0;  // of each choice at most
  int32_t choices = 1;
  uint64_t salt = 0;
  bool resumed = false;          // of some tokens are generated
  bool promise_all = false;      // decode is to promise all tokens to come, however many
  bool shared = false;           // other tenants send prompts too
  bool local_prefill = false;    // a decode worker may compute the prompt, where that is sooner
  std::optional<size_t> decode;  // it has a grant there already: only prefill is wanted
};

// What of a request is too large for a pair even when it is empty: the first bound that it breaks,
// in the order of the kinds.
struct Excess {
  enum class Kind : uint8_t {
    kPrompt,   // tokens to prefill, over the prefill worker's pool
    kTokens,   // of prompt and answer of a choice, over the decode worker's pool
    kChoices,  // over the places in the decode worker's batch
    kBlocks,   // of a grant, over the decode worker's pool
  };
  Kind kind = Kind::kPrompt;
  int64_t limit = 0;
  int64_t needed = 0;
  auto operator<=>(const Excess&) const = default;
};

struct Placement {
  enum class Kind : uint8_t {
    kPair,
    kLocal,      // `decode` computes the prompt too
    kWait,       // a fitting pair lives that is large enough, and has no room now
    kNeverFits,  // no fitting pair is large enough
    kNoPair,     // no two workers fit each other
    kCutOff,     // no prefill worker reaches the decode worker that granted room
  };
  Kind kind = Kind::kNoPair;
  size_t prefill = 0;  // indexes of the spans
  size_t decode = 0;
  Excess excess;  // kNeverFits: of the pair that keeps most bounds, of such the roomiest
};

// Blocks of a grant: full prompt blocks are shared by the choices, the rest is each one's own.
int64_t GrantBlocks(const PlacementRequest& request, const WorkerView& decode);

// Tokens that a prefill worker has to compute of the prompt: all that is not known, and the last.
int64_t TokensToCompute(const PlacementRequest& request, const WorkerView& prefill);

// A prefill worker takes another prompt while it has fewer than this many: one that it computes,
// and one that is there when that ends...
inline constexpr int32_t kPrefillDepth = 2;
// ...or would reach it within this many seconds. What waits there waits in order of arrival, beyond
// the reach of priorities and fair shares: so no more than keeps it busy.
inline constexpr double kPrefillWaitSeconds = 0.25;
// Where tenants share it, it takes another when it has none, or would reach it within this many
// seconds: who has the next turn then waits for one prompt of the others, not for several that are
// computed together.
inline constexpr double kSharedWaitSeconds = 0.03;

Placement Place(const PlacementRequest& request, std::span<const WorkerView> prefills,
                std::span<const WorkerView> decodes);

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_PLACEMENT_H_
