// SPDX-License-Identifier: Apache-2.0
// What a request's ids start with and is known here, and prompts that are computed here, in chunks
// beside the batch. loop.cc has the rest.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/decode/loop.h"

namespace setu::decode {

kv::BlockHash Loop::RootOf(const Request& request) const {
  const engine::RunnerFingerprint& fingerprint = runner_.fingerprint();
  return kv::RootHash({.model = fingerprint.model,
                       .numerics = fingerprint.numerics,
                       .block_tokens = fingerprint.layout.block_tokens,
                       .salt = request.sequence.cache_salt});
}

// Of the first `most_tokens` ids.
void Loop::HoldKnown(Request& request, int32_t most_tokens) {
  const int32_t block_tokens = runner_.fingerprint().layout.block_tokens;
  const std::vector<engine::TokenId>& ids = request.sequence.ids;
  kv::PrefixCache::Place place = kv::PrefixCache::Begin(RootOf(request));
  request.known = cache_.Find(place, ids, most_tokens / block_tokens);
  counts_.prefix_tokens_asked += ids.size();
  counts_.prefix_tokens_known += int64_t{request.known.size()} * block_tokens;
}

// All KV is there: `lease` becomes the whole table, and what others may find is told. Blocks that
// another request with the same start has made known meanwhile take the place of our own. KV of
// another numeric path is for this request alone: others are promised the bits of ours.
void Loop::Remember(Request& request) {
  if (request.mixed) {
    request.place = kv::PrefixCache::Nowhere();
    request.known.Append(std::move(request.lease));
    request.lease = std::move(request.known);
    return;
  }
  const std::vector<engine::TokenId>& ids = request.sequence.ids;
  request.place = kv::PrefixCache::Begin(RootOf(request));
  kv::BlockLease table =
      cache_.Find(request.place, ids, request.known.size() + request.lease.size());
  table.Append(request.lease.Split(table.size() - request.known.size()));
  request.known.Release();
  request.lease = std::move(table);
  cache_.Add(request.place, ids, request.lease.blocks());
}

// RESOURCE_EXHAUSTED and INVALID_ARGUMENT as Room::Promise; ALREADY_EXISTS where another stream
// expects the same KV.
absl::Status Loop::Admit(Request& request, const Opened& event) {
  if (event.prefill_here && options_.chunk_tokens == 0) {
    return absl::InvalidArgumentError(
        "open.prefill_here: this worker computes no prompts; start it with --chunk-tokens");
  }
  // The last token of a prompt that is computed here is computed in any case.
  const auto tokens = static_cast<int32_t>(request.sequence.ids.size());
  HoldKnown(request, event.prefill_here ? tokens - 1 : tokens);
  Demand demand = DemandOf(request.sequence);
  demand.held_blocks = request.known.size();
  demand.all_output = event.promise_all;
  absl::StatusOr<Grant> grant = room_.Promise(demand);
  if (!grant.ok()) return grant.status();
  request.grant = *std::move(grant);
  if (event.prefill_here || Expect(request)) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("another stream holds attempt ", request.attempt,
                                               " of ", request.sequence.uuid,
                                               "; count attempts up"));
}

void Loop::StartComputing(Request& request) {
  request.state = Request::State::kComputing;
  const int32_t known_tokens = request.known.size() * runner_.options().block_tokens;
  request.lease = std::move(request.known);
  request.lease.Append(request.grant.Take(request.grant.shape().prompt));
  prompts_.Add({.id = request.id,
                .tokens = static_cast<int32_t>(request.sequence.ids.size()),
                .resumed = GeneratedBefore(request) > 0,
                .arrived = clock_.Now()});
  prompts_.Known(request.id, known_tokens);
}

// All of them have their blocks already.
std::span<const Stepper::PromptChunk> Loop::NextChunks(std::span<Sequence* const> batch) {
  chunks_.clear();
  if (options_.chunk_tokens == 0) return chunks_;
  constexpr int32_t kEnough = std::numeric_limits<int32_t>::max();
  for (const worker::Chunk& chunk :
       prompts_.Next(clock_.Now(), kEnough, stepper_.PromptTokens(batch))) {
    chunks_.push_back({.request = requests_.at(chunk.id).get(),
                       .start = chunk.start,
                       .tokens = chunk.tokens,
                       .last = chunk.last});
  }
  return chunks_;
}

void Loop::TakeComputed(std::span<const Stepper::PromptChunk> chunks,
                        std::span<const std::vector<wire::FirstToken>> first_tokens) {
  size_t next = 0;
  for (const Stepper::PromptChunk& chunk : chunks) {
    if (!chunk.last) continue;
    chunk.request->stream->SendCommitted(chunk.request->attempt, 0);
    Start(*chunk.request, first_tokens[next++]);
  }
}

}  // namespace setu::decode
