// SPDX-License-Identifier: Apache-2.0
// Which prompts the next step computes, and how many tokens of each. Policy only: no clock, no
// pool, no model; equal calls give equal answers.
//
//   PromptScheduler scheduler({.chunk_tokens = 512, .block_tokens = 16});
//   scheduler.Add({.id = 7, .tokens = 700, .arrived = now});
//   for (const Chunk& chunk : scheduler.Next(now, pool.free())) ...   // 512 tokens of prompt 7
//
// Order: prompts over the age limit by arrival, then resumed ones, then new ones; within each the
// shortest remainder first. A prompt starts only where the pool has blocks for all of it; where the
// first in order that may not be passed over (over age or resumed) lacks them, nobody starts.
#ifndef SETU_COMMON_WORKER_PROMPT_SCHEDULER_H_
#define SETU_COMMON_WORKER_PROMPT_SCHEDULER_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "common/base/clock.h"

namespace setu::worker {

using PromptId = uint64_t;

struct ChunkLimits {
  int32_t chunk_tokens = 512;  // of one step, all prompts together; at least block_tokens
  int32_t block_tokens = 16;
  int32_t chunks = 64;  // prompts of one step
  Duration age_limit = std::chrono::seconds(5);
};

struct Arrival {
  PromptId id = 0;
  int32_t tokens = 0;
  bool resumed = false;
  TimePoint arrived;
};

// Part of a prompt in one step. All but the last of a prompt end on a block's border.
struct Chunk {
  PromptId id = 0;
  int32_t start = 0;
  int32_t tokens = 0;
  bool first = false;
  bool last = false;
};

class PromptScheduler {
 public:
  explicit PromptScheduler(const ChunkLimits& limits);

  void Add(const Arrival& arrival);
  // So many tokens at the start of a prompt that has not started need not be computed.
  void Known(PromptId id, int32_t tokens);
  // Forgets a prompt that was cancelled or has failed; one that is unknown already is no error.
  void Remove(PromptId id);
  // The next step's chunks, taken as computed; a prompt is forgotten with its last chunk. The first
  // ones of prompts take blocks for their whole prompt, `free_blocks` at most in all. `tokens`
  // bounds the step further. Valid until the next call.
  const std::vector<Chunk>& Next(TimePoint now, int32_t free_blocks,
                                 int32_t tokens = std::numeric_limits<int32_t>::max());

  int64_t tokens_left() const;

 private:
  struct Entry {
    Arrival arrival;
    int32_t computed = 0;  // or known before
    bool started = false;
    int32_t remaining() const { return arrival.tokens - computed; }
  };
  bool IsOld(const Entry& entry, TimePoint now) const;
  bool Before(const Entry& a, const Entry& b, TimePoint now) const;
  int32_t ChunkTokens(const Entry& entry, int32_t budget) const;

  const ChunkLimits limits_;
  std::vector<Entry> entries_;
  std::vector<Chunk> chunks_;
};

}  // namespace setu::worker

#endif  // SETU_COMMON_WORKER_PROMPT_SCHEDULER_H_
