// SPDX-License-Identifier: Apache-2.0
#include "common/worker/prompt_scheduler.h"

#include <algorithm>
#include <tuple>

#include "common/base/check.h"
#include "common/kv/block_pool.h"

namespace setu::worker {

PromptScheduler::PromptScheduler(const ChunkLimits& limits) : limits_(limits) {
  SETU_CHECK(limits.chunk_tokens >= limits.block_tokens, "a step can compute a block");
}

void PromptScheduler::Add(const Arrival& arrival) { entries_.push_back({arrival}); }

void PromptScheduler::Known(PromptId id, int32_t tokens) {
  for (Entry& entry : entries_) {
    if (entry.arrival.id == id && !entry.started) entry.computed = tokens;
  }
}

void PromptScheduler::Remove(PromptId id) {
  std::erase_if(entries_, [id](const Entry& entry) { return entry.arrival.id == id; });
}

const std::vector<Chunk>& PromptScheduler::Next(TimePoint now, int32_t free_blocks,
                                                int32_t tokens) {
  std::sort(entries_.begin(), entries_.end(),
            [&](const Entry& a, const Entry& b) { return Before(a, b, now); });
  chunks_.clear();
  int32_t budget = std::min(limits_.chunk_tokens, tokens);
  bool may_start = true;
  for (Entry& entry : entries_) {
    if (static_cast<int32_t>(chunks_.size()) == limits_.chunks) break;
    const int32_t part = ChunkTokens(entry, budget);
    if (part == 0) continue;
    const bool first = !entry.started;
    if (first) {
      const int32_t blocks = kv::BlocksFor(entry.arrival.tokens, limits_.block_tokens);
      if (blocks > free_blocks && (entry.arrival.resumed || IsOld(entry, now))) may_start = false;
      if (blocks > free_blocks || !may_start) continue;
      free_blocks -= blocks;
    }
    entry.started = true;
    chunks_.push_back({entry.arrival.id, entry.computed, part, first, part == entry.remaining()});
    entry.computed += part;
    budget -= part;
  }
  std::erase_if(entries_, [](const Entry& entry) { return entry.remaining() == 0; });
  return chunks_;
}

int64_t PromptScheduler::tokens_left() const {
  int64_t tokens = 0;
  for (const Entry& entry : entries_) tokens += entry.remaining();
  return tokens;
}

bool PromptScheduler::IsOld(const Entry& entry, TimePoint now) const {
  return now - entry.arrival.arrived >= limits_.age_limit;
}

bool PromptScheduler::Before(const Entry& a, const Entry& b, TimePoint now) const {
  const bool a_old = IsOld(a, now), b_old = IsOld(b, now);
  if (a_old != b_old) return a_old;
  const auto arrival = [](const Entry& e) { return std::tuple(e.arrival.arrived, e.arrival.id); };
  if (a_old) return arrival(a) < arrival(b);
  const auto rank = [](const Entry& e) { return std::tuple(!e.arrival.resumed, e.remaining()); };
  return rank(a) != rank(b) ? rank(a) < rank(b) : arrival(a) < arrival(b);
}

int32_t PromptScheduler::ChunkTokens(const Entry& entry, int32_t budget) const {
  if (entry.remaining() <= budget) return entry.remaining();
  return budget - budget % limits_.block_tokens;
}

}  // namespace setu::worker
