// SPDX-License-Identifier: Apache-2.0
#include "services/router/placement.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace setu::router {
namespace {

// These stand in for rates that were not measured yet, of any worker that fits the same others.
constexpr double kAssumedTokensPerSecond = 1000;
constexpr double kAssumedLinkBytesPerSecond = 1e9;

// So far ahead decode's batch counts: longer answers do not make it more important.
constexpr int64_t kDecodeSteps = 64;

// The worker's report counts our claims too once it is fresh: the larger of both is never too low
// by our own doing, so a burst does not herd onto the worker that reported best.
int64_t TokensAhead(const WorkerView& w) { return std::max(w.queued_tokens, w.claimed.tokens); }
int32_t PromptsAhead(const WorkerView& w) { return std::max(w.queued, w.claimed.prompts); }
int32_t Running(const WorkerView& w) { return std::max(w.running, w.claimed.sequences); }

int64_t FreeBlocks(const WorkerView& w) {
  return w.blocks_total - std::max(w.blocks_total - w.blocks_free, w.claimed.blocks);
}

double RateOr(double assumed, const WorkerView& w) {
  return w.tokens_per_second > 0 ? w.tokens_per_second : assumed;
}

double LinkRate(const WorkerView& w) {
  return w.link_bytes_per_second > 0 ? w.link_bytes_per_second : kAssumedLinkBytesPerSecond;
}

bool PrefillStartsSoon(const PlacementRequest& request, const WorkerView& w, double rate) {
  const int32_t depth = request.shared ? 1 : kPrefillDepth;
  const double wait = request.shared ? kSharedWaitSeconds : kPrefillWaitSeconds;
  return !w.avoid && (PromptsAhead(w) < depth || static_cast<double>(TokensAhead(w)) / rate < wait);
}

// A full worker is not asked for what it has just let go of: resumes come with something to spare.
bool DecodeHasRoom(const PlacementRequest& request, const WorkerView& w) {
  const bool alone = FreeBlocks(w) == w.blocks_total;
  const int64_t reserve = request.resumed && !alone ? w.resume_watermark : 0;
  return !w.avoid && FreeBlocks(w) >= GrantBlocks(request, w) + reserve &&
         (w.running_max == 0 || Running(w) + request.choices <= w.running_max);
}

// SplitMix64's finalizer (Steele, Lea, Flood, "Fast splittable pseudorandom number generators").
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

int64_t PromptBlocks(const PlacementRequest& request, const WorkerView& w) {
  return (request.prompt_tokens + w.block_tokens - 1) / w.block_tokens;
}

// Of one worker, or of two: less is better.
struct Cost {
  double seconds;  // predicted
  double full;     // how full the decode worker is
  uint64_t salt;
  auto operator<=>(const Cost&) const = default;
};

Cost PrefillCost(const PlacementRequest& request, double rate, const WorkerView& w, size_t index) {
  const int64_t tokens = TokensAhead(w) + TokensToCompute(request, w);
  return {static_cast<double>(tokens) / rate, 0.0, Mix(request.salt + (index << 32))};
}

// How decode workers are compared. Their predictions are rough: a rate is that of the batch which
// was there while it was measured, not of the one that is there now. So seconds up to the same
// power of two count as equal, else whoever once was measured fast stays the fullest.
Cost Roughly(const Cost& cost) {
  const double seconds = std::exp2(std::ceil(std::log2(std::max(cost.seconds, 1e-9))));
  return {seconds, cost.full, cost.salt};
}

// Of the first tokens of the answer, beside those that run there already.
double DecodeSeconds(const PlacementRequest& request, const WorkerView& w) {
  const double step = Running(w) / RateOr(kAssumedTokensPerSecond, w);
  return static_cast<double>(std::min(request.tokens_to_come, kDecodeSteps)) * step;
}

Cost DecodeCost(double seconds, const PlacementRequest& request, const WorkerView& w,
                size_t index) {
  const double full = 1.0 - static_cast<double>(FreeBlocks(w)) /
                                static_cast<double>(std::max<int64_t>(w.blocks_total, 1));
  return {seconds, full, Mix(request.salt + index)};
}

// `link`: bytes/s.
Cost ReceivingCost(const PlacementRequest& request, double link, const WorkerView& w,
                   size_t index) {
  const int64_t missing = PromptBlocks(request, w) - w.known_blocks;
  const double sent = static_cast<double>(missing * w.block_bytes) / link;
  return DecodeCost(sent + DecodeSeconds(request, w), request, w, index);
}

Cost ComputingCost(const PlacementRequest& request, const WorkerView& w, size_t index) {
  const auto own = static_cast<double>(TokensToCompute(request, w));
  const double held_up = own * (1 + Running(w)) / w.prompt_tokens_per_second;
  const double ahead = static_cast<double>(TokensAhead(w)) / w.prompt_tokens_per_second;
  return DecodeCost(ahead + held_up + DecodeSeconds(request, w), request, w, index);
}

int64_t PoolTokens(const WorkerView& w) { return w.blocks_total * w.block_tokens; }

// A worker that answers INVALID_ARGUMENT ends the request, so one that would is never asked.
std::optional<Excess> PrefillExcess(const PlacementRequest& request, const WorkerView& w) {
  if (request.prompt_tokens <= PoolTokens(w)) return std::nullopt;
  return Excess{Excess::Kind::kPrompt, PoolTokens(w), request.prompt_tokens};
}

std::optional<Excess> DecodeExcess(const PlacementRequest& request, const WorkerView& w) {
  using Kind = Excess::Kind;
  if (request.decode) return std::nullopt;  // it has promised its part
  const int64_t tokens = request.prompt_tokens + request.tokens_to_come;
  if (tokens > PoolTokens(w)) return Excess{Kind::kTokens, PoolTokens(w), tokens};
  if (w.running_max > 0 && request.choices > w.running_max) {
    return Excess{Kind::kChoices, w.running_max, request.choices};
  }
  const int64_t blocks = GrantBlocks(request, w);
  if (blocks > w.blocks_total) return Excess{Kind::kBlocks, w.blocks_total, blocks};
  return std::nullopt;
}

// The workers of one role that fit the same others.
struct Side {
  bool lives = false;         // there is one
  bool large_enough = false;  // there is one that could take the request, when empty
  Excess excess;              // of the others, the mildest
  std::optional<Cost> cost;   // of the best that can take it now
  size_t best = 0;

  void Consider(size_t index, const std::optional<Excess>& too_much, bool has_room,
                const Cost& its_cost, const auto& order) {
    lives = true;
    if (too_much) {
      excess = std::max(excess, *too_much);
      return;
    }
    large_enough = true;
    if (!has_room || (cost && order(*cost) <= order(its_cost))) return;
    cost = its_cost;
    best = index;
  }
};

struct Group {
  Side prefill, decode;
  Side local;  // of the decode workers, those that may compute the prompt
};
using Groups = std::map<size_t, Group>;  // by fit

bool Reaches(const WorkerView& prefill, size_t decode) {
  return std::find(prefill.unreached.begin(), prefill.unreached.end(), decode) ==
         prefill.unreached.end();
}

// By fit: what counts for a prefill worker that was not measured, who else would wait for prompts
// until those that were are overrun.
std::map<size_t, double> AssumedRates(std::span<const WorkerView> prefills) {
  std::map<size_t, double> rates;
  for (const WorkerView& w : prefills) {
    rates[w.fit] = std::max(rates[w.fit], w.tokens_per_second);
  }
  for (auto& [fit, rate] : rates) {
    if (rate <= 0) rate = kAssumedTokensPerSecond;
  }
  return rates;
}

// `passed`: prefill workers that shall not be chosen.
Groups Look(const PlacementRequest& request, std::span<const WorkerView> prefills,
            std::span<const WorkerView> decodes, const std::set<size_t>& passed) {
  Groups groups;
  const std::map<size_t, double> assumed = AssumedRates(prefills);
  for (size_t p = 0; p < prefills.size(); ++p) {
    const WorkerView& w = prefills[p];
    const double rate = RateOr(assumed.at(w.fit), w);
    groups[w.fit].prefill.Consider(p, PrefillExcess(request, w),
                                   PrefillStartsSoon(request, w, rate) && !passed.contains(p),
                                   PrefillCost(request, rate, w, p), std::identity());
  }
  for (size_t d = 0; d < decodes.size(); ++d) {
    const WorkerView& w = decodes[d];
    const bool granted = request.decode == d;
    if (request.decode && !granted) continue;
    const std::optional<Excess> excess = DecodeExcess(request, w);
    const bool room = granted || DecodeHasRoom(request, w);
    Group& group = groups[w.fit];
    const WorkerView* sender = group.prefill.cost ? &prefills[group.prefill.best] : nullptr;
    const double link = sender != nullptr ? LinkRate(*sender) : kAssumedLinkBytesPerSecond;
    group.decode.Consider(d, excess, room && (sender == nullptr || Reaches(*sender, d)),
                          ReceivingCost(request, link, w, d), Roughly);
    if (granted || !request.local_prefill || w.prompt_tokens_per_second <= 0) continue;
    group.local.Consider(d, excess,
                         room && PrefillStartsSoon(request, w, w.prompt_tokens_per_second),
                         ComputingCost(request, w, d), Roughly);
  }
  return groups;
}

// A prefill worker that was chosen and reaches no decode worker with room.
std::optional<size_t> Stuck(const Groups& groups, std::span<const WorkerView> prefills) {
  for (const auto& [fit, group] : groups) {
    const Side& prefill = group.prefill;
    if (prefill.cost && !group.decode.cost && !prefills[prefill.best].unreached.empty()) {
      return prefill.best;
    }
  }
  return std::nullopt;
}

bool IsCutOff(size_t decode, size_t fit, std::span<const WorkerView> prefills) {
  const auto fits = [&](const WorkerView& w) { return w.fit == fit; };
  const auto sends = [&](const WorkerView& w) { return fits(w) && Reaches(w, decode); };
  return std::any_of(prefills.begin(), prefills.end(), fits) &&
         std::none_of(prefills.begin(), prefills.end(), sends);
}

}  // namespace

int64_t GrantBlocks(const PlacementRequest& request, const WorkerView& decode) {
  const int64_t budget = request.promise_all
                             ? request.tokens_to_come
                             : std::min(request.tokens_to_come, decode.grant_output_tokens);
  const int64_t shared = request.prompt_tokens / decode.block_tokens;
  const int64_t whole =
      (request.prompt_tokens + budget + decode.block_tokens - 1) / decode.block_tokens;
  return shared + request.choices * (whole - shared);
}

int64_t TokensToCompute(const PlacementRequest& request, const WorkerView& prefill) {
  const int64_t last_block = (request.prompt_tokens - 1) / prefill.block_tokens;
  return request.prompt_tokens -
         std::min<int64_t>(prefill.known_blocks, last_block) * prefill.block_tokens;
}

Placement Place(const PlacementRequest& request, std::span<const WorkerView> prefills,
                std::span<const WorkerView> decodes) {
  if (request.decode && IsCutOff(*request.decode, decodes[*request.decode].fit, prefills)) {
    return {.kind = Placement::Kind::kCutOff};
  }
  std::set<size_t> passed;
  Groups groups = Look(request, prefills, decodes, passed);
  while (const std::optional<size_t> stuck = Stuck(groups, prefills)) {
    passed.insert(*stuck);
    groups = Look(request, prefills, decodes, passed);
  }
  Placement best;
  std::optional<Cost> best_cost;
  const auto offer = [&](const Cost& cost, const Placement& placement) {
    if (best_cost && *best_cost <= cost) return;
    best_cost = cost;
    best = placement;
  };
  for (const auto& [fit, group] : groups) {
    const auto& [prefill, decode, local] = group;
    const bool pair = prefill.lives && decode.lives;
    if (!pair && !local.lives) continue;
    if (!(pair && prefill.large_enough && decode.large_enough) && !local.large_enough) {
      if (best.kind == Placement::Kind::kNoPair) best.kind = Placement::Kind::kNeverFits;
      const bool by_prefill = pair && !prefill.large_enough && !local.lives;
      best.excess = std::max(best.excess, by_prefill ? prefill.excess : decode.excess);
      continue;
    }
    if (!best_cost) best.kind = Placement::Kind::kWait;
    if (local.cost) {
      offer(*local.cost, {.kind = Placement::Kind::kLocal, .decode = local.best});
    }
    if (prefill.cost && decode.cost) {
      const Cost& c = *decode.cost;
      offer({prefill.cost->seconds + c.seconds, c.full, c.salt},
            {.kind = Placement::Kind::kPair, .prefill = prefill.best, .decode = decode.best});
    }
  }
  return best;
}

}  // namespace setu::router
