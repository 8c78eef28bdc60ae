// SPDX-License-Identifier: Apache-2.0
#include "services/router/placement.h"

#include <algorithm>
#include <tuple>

namespace setu::router {
namespace {

// Stands in for a rate that was not measured yet.
constexpr double kAssumedTokensPerSecond = 1000;

// The worker's report counts our claims too once it is fresh: the larger of both is never too low
// by our own doing, so a burst does not herd onto the worker that reported best.
int64_t TokensAhead(const WorkerView& w) { return std::max(w.queued_tokens, w.claimed.tokens); }
int32_t PromptsAhead(const WorkerView& w) { return std::max(w.queued, w.claimed.prompts); }
int32_t Running(const WorkerView& w) { return std::max(w.running, w.claimed.sequences); }

int64_t FreeBlocks(const WorkerView& w) {
  return w.blocks_total - std::max(w.blocks_total - w.blocks_free, w.claimed.blocks);
}

double Rate(const WorkerView& w) {
  return w.tokens_per_second > 0 ? w.tokens_per_second : kAssumedTokensPerSecond;
}

bool PrefillStartsSoon(const WorkerView& w) {
  return !w.avoid && (PromptsAhead(w) < kPrefillDepth ||
                      static_cast<double>(TokensAhead(w)) / Rate(w) < kPrefillWaitSeconds);
}

bool DecodeHasRoom(const PlacementRequest& request, const WorkerView& w) {
  return !w.avoid && FreeBlocks(w) >= GrantBlocks(request, w) &&
         (w.running_max == 0 || Running(w) + request.choices <= w.running_max);
}

// SplitMix64's finalizer (Steele, Lea, Flood, "Fast splittable pseudorandom number generators").
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Less is better: the wait for a first token, then how full decode would be, then the salt.
using Cost = std::tuple<double, double, uint64_t>;

Cost CostOf(const PlacementRequest& request, const WorkerView& prefill, size_t p,
            const WorkerView& decode, size_t d) {
  const double wait =
      static_cast<double>(TokensAhead(prefill) + request.prompt_tokens) / Rate(prefill);
  const double full = 1.0 - static_cast<double>(FreeBlocks(decode)) /
                                static_cast<double>(std::max<int64_t>(decode.blocks_total, 1));
  return {wait, full, Mix(request.salt + (p << 32) + d)};
}

int64_t PoolTokens(const WorkerView& w) { return w.blocks_total * w.block_tokens; }

// A worker that answers INVALID_ARGUMENT ends the request, so one that would is never asked.
std::optional<Excess> ExcessOf(const PlacementRequest& request, const WorkerView& prefill,
                               const WorkerView& decode) {
  using Kind = Excess::Kind;
  if (request.prompt_tokens > PoolTokens(prefill)) {
    return Excess{Kind::kPrompt, PoolTokens(prefill), request.prompt_tokens};
  }
  if (request.decode) return std::nullopt;  // decode has promised its part
  const int64_t tokens = request.prompt_tokens + request.tokens_to_come;
  if (tokens > PoolTokens(decode)) return Excess{Kind::kTokens, PoolTokens(decode), tokens};
  if (decode.running_max > 0 && request.choices > decode.running_max) {
    return Excess{Kind::kChoices, decode.running_max, request.choices};
  }
  const int64_t blocks = GrantBlocks(request, decode);
  if (blocks > decode.blocks_total) return Excess{Kind::kBlocks, decode.blocks_total, blocks};
  return std::nullopt;
}

}  // namespace

int64_t GrantBlocks(const PlacementRequest& request, const WorkerView& decode) {
  const int64_t budget = std::min(request.tokens_to_come, decode.grant_output_tokens);
  const int64_t shared = request.prompt_tokens / decode.block_tokens;
  const int64_t whole =
      (request.prompt_tokens + budget + decode.block_tokens - 1) / decode.block_tokens;
  return shared + request.choices * (whole - shared);
}

Placement Place(const PlacementRequest& request, std::span<const WorkerView> prefills,
                std::span<const WorkerView> decodes) {
  using Kind = Placement::Kind;
  Placement best;
  std::optional<Cost> best_cost;
  for (size_t d = 0; d < decodes.size(); ++d) {
    const bool granted = request.decode == d;
    if (request.decode && !granted) continue;
    for (size_t p = 0; p < prefills.size(); ++p) {
      if (prefills[p].fit != decodes[d].fit) continue;
      if (const auto excess = ExcessOf(request, prefills[p], decodes[d])) {
        if (best.kind == Kind::kNoPair) best.kind = Kind::kNeverFits;
        best.excess = std::max(best.excess, *excess);
        continue;
      }
      if (best.kind != Kind::kPair) best.kind = Kind::kWait;
      if (!granted && !DecodeHasRoom(request, decodes[d])) continue;
      if (!PrefillStartsSoon(prefills[p])) continue;
      const Cost cost = CostOf(request, prefills[p], p, decodes[d], d);
      if (best_cost && *best_cost <= cost) continue;
      best_cost = cost;
      best.kind = Kind::kPair;
      best.prefill = p;
      best.decode = d;
    }
  }
  return best;
}

}  // namespace setu::router
