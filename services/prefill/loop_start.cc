// SPDX-License-Identifier: Apache-2.0
// How a prompt starts: what of it is known already, the blocks for the rest, its push.
#include <utility>

#include "common/base/check.h"
#include "services/prefill/loop.h"

namespace setu::prefill {
namespace {

// Whatever its choices sample: decode will not want the KV.
bool EndsOnFirstToken(const wire::Sequence& sequence) {
  const engine::SequenceIds ids = {sequence.ids, sequence.prompt_length};
  return ids.generated() + 1 >= sequence.sampling.max_tokens;
}

// The last token is always computed: its logits are what is wanted.
std::span<const engine::TokenId> Findable(const wire::Sequence& sequence) {
  return std::span(sequence.ids).first(sequence.ids.size() - 1);
}

}  // namespace

kv::BlockHash Loop::RootOf(const wire::Sequence& sequence) const {
  const engine::RunnerFingerprint& fingerprint = runner_.fingerprint();
  return kv::RootHash({.model = fingerprint.model,
                       .numerics = fingerprint.numerics,
                       .block_tokens = fingerprint.layout.block_tokens,
                       .salt = sequence.cache_salt});
}

int32_t Loop::KnownTokens(const Queued& queued) const {
  return cache_.KnownTokens(kv::PrefixCache::Begin(queued.root), Findable(queued.prompt.sequence));
}

// What steps since then have computed, or taken blocks from, changes what is queued.
void Loop::LookForPrefixes() {
  if (looked_at_ == cache_.version()) return;
  looked_at_ = cache_.version();
  for (const auto& [id, queued] : queued_) scheduler_.Known(id, KnownTokens(queued));
}

// All known blocks are held before others are taken: taking makes the cache forget.
void Loop::StartNew(std::span<const worker::Chunk> chunks) {
  for (const worker::Chunk& chunk : chunks) {
    if (chunk.first) HoldKnown(chunk);
  }
  for (const worker::Chunk& chunk : chunks) {
    if (chunk.first) TakeBlocks(chunk.id);
  }
}

void Loop::HoldKnown(const worker::Chunk& first) {
  auto queued = queued_.extract(first.id);
  SETU_CHECK(!queued.empty(), "only a queued prompt starts");
  waiting_.fetch_sub(1);
  Running& running = running_[first.id];
  running.prompt = std::move(queued.mapped().prompt);
  running.arrived = queued.mapped().arrived;
  running.started = clock_.Now();
  running.place = kv::PrefixCache::Begin(queued.mapped().root);
  const wire::Sequence& sequence = running.prompt.sequence;
  running.lease = cache_.Find(running.place, Findable(sequence), runner_.pool().total());
  running.known_tokens = running.lease.size() * runner_.options().block_tokens;
  SETU_CHECK(running.known_tokens == first.start, "what the scheduler leaves out is known");
  current_.prefix_tokens_asked += sequence.ids.size();
  current_.prefix_tokens_known += running.known_tokens;
}

void Loop::TakeBlocks(PromptId id) {
  Running& running = running_.at(id);
  const wire::Sequence& sequence = running.prompt.sequence;
  const int32_t known = running.lease.size();
  const int32_t blocks = kv::BlocksFor(sequence.ids.size(), runner_.options().block_tokens);
  auto lease = runner_.pool().Take(blocks - known);
  SETU_CHECK(lease.has_value(), "the scheduler starts what the pool has blocks for");
  running.lease.Append(*std::move(lease));
  if (EndsOnFirstToken(sequence)) return;
  running.push = StartPush(id, running);
  for (int32_t layer = 0; layer < runner_.fingerprint().layout.layers; ++layer) {
    running.push->Final(layer, known);
  }
}

std::shared_ptr<kv_transfer::Push> Loop::StartPush(PromptId id, const Running& running) {
  const wire::Sequence& sequence = running.prompt.sequence;
  const std::span<const kv::BlockId> blocks = running.lease.blocks();
  return start_push_(running.prompt.decode_address,
                     {.uuid = sequence.uuid,
                      .attempt = running.prompt.attempt,
                      .fingerprint = runner_.fingerprint(),
                      .token_count = static_cast<int32_t>(sequence.ids.size()),
                      .ids_digest = wire::IdsDigest(sequence.ids),
                      .blocks = {blocks.begin(), blocks.end()},
                      .first_block = running.prompt.blocks_held},
                     [inbox = inbox_, id](const kv_transfer::PushResult& result) {
                       inbox->PushUnbounded(PushEnded{id, result});
                     });
}

}  // namespace setu::prefill
