// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/hash_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/engine/sampler.h"
#include "tests/simulator/dice.h"

namespace setu::simulator {
namespace {

constexpr int32_t kLayers = 2;

uint64_t HashOf(engine::TokenId id, int32_t position) {
  return Mixed((uint64_t{static_cast<uint32_t>(position)} << 32) | static_cast<uint32_t>(id));
}

uint64_t Fold(uint64_t before, uint64_t next) { return Mixed(before ^ (next * 0x100000001b3)); }

// Three ids are likely, the others hardly: so that a draw shows what the sampler was told.
void FillLogits(uint64_t hash, std::span<float> row) {
  std::ranges::fill(row, -30.0f);
  row[hash % kVocabulary] = 4.0f;
  row[(hash >> 20) % kVocabulary] = 3.5f;
  row[(hash >> 40) % kVocabulary] = 3.0f;
}

kv::KvLayout Layout() {
  return {.block_tokens = kBlockTokens,
          .layers = kLayers,
          .kv_heads = 1,
          .head_dim = 1,
          .type = kernels::KvType::kF32};
}

}  // namespace

HashRunner::HashRunner(int32_t blocks, int32_t max_rows, std::function<void(int32_t)> spend)
    : spend_(std::move(spend)) {
  const kv::KvLayout layout = Layout();
  SETU_CHECK(layout.piece_bytes() == kBlockTokens * sizeof(uint64_t), "a slot is a hash");
  options_.block_tokens = kBlockTokens;
  options_.max_rows = max_rows;
  options_.max_logits = 16;
  config_.name = "hash";
  config_.context_length = kContext;
  config_.layers = kLayers;
  config_.vocabulary = kVocabulary;
  auto storage = kv::KvStorage::Create(layout, blocks);
  SETU_CHECK(storage.ok(), "a small pool has memory");
  storage_ = *std::move(storage);
  pool_ = std::make_unique<kv::BlockPool>(blocks);
  fingerprint_ = {.model = 7,
                  .tokenizer = 1,
                  .numerics = "hash/kv-f32/r1",
                  .logits_digest = 7,
                  .layout = layout};
  logits_.resize(size_t{16} * kVocabulary);
}

kernels::ConstMatrix HashRunner::Step(std::span<const engine::StepEntry> entries,
                                      const model::LayerDone& layer_done) {
  int32_t rows = 0;
  for (const engine::StepEntry& entry : entries) {
    for (size_t i = 0; i < entry.ids.size(); ++i, ++rows) {
      const auto position = entry.start + static_cast<int32_t>(i);
      SetSlot(entry.blocks, position, 0, HashOf(entry.ids[i], position));
    }
  }
  spend_(rows);
  if (layer_done) layer_done(0);
  int64_t wanted = 0;
  for (const engine::StepEntry& entry : entries) {
    const auto end = entry.start + static_cast<int32_t>(entry.ids.size());
    uint64_t seen = 0, summed = 0;
    for (int32_t position = 0; position < end; ++position) {
      seen = Fold(seen, Slot(entry.blocks, position, 0));
      if (position >= entry.start) SetSlot(entry.blocks, position, 1, seen);
      summed = Fold(summed, Slot(entry.blocks, position, 1));
    }
    if (!entry.want_logits) continue;
    FillLogits(summed, std::span(logits_).subspan(wanted++ * kVocabulary, kVocabulary));
  }
  if (layer_done) layer_done(1);
  return {logits_.data(), wanted, kVocabulary, kVocabulary};
}

uint64_t HashRunner::Slot(std::span<const kv::BlockId> blocks, int32_t position,
                          int32_t layer) const {
  uint64_t value;
  const auto piece = std::as_const(*storage_).Piece(blocks[position / kBlockTokens], layer);
  std::memcpy(&value, piece.data() + position % kBlockTokens * sizeof value, sizeof value);
  return value;
}

void HashRunner::SetSlot(std::span<const kv::BlockId> blocks, int32_t position, int32_t layer,
                         uint64_t value) {
  const auto piece = storage_->Piece(blocks[position / kBlockTokens], layer);
  std::memcpy(piece.data() + position % kBlockTokens * sizeof value, &value, sizeof value);
}

std::vector<engine::TokenId> Reference(const router::ValidRequest& request, uint32_t choice) {
  std::vector<engine::TokenId> ids = request.prompt_ids();
  const auto prompt = static_cast<int32_t>(ids.size());
  engine::Sampler sampler(kVocabulary);
  std::vector<float> row(kVocabulary);
  uint64_t seen = 0, summed = 0;
  for (int32_t position = 0;; ++position) {
    seen = Fold(seen, HashOf(ids[position], position));
    summed = Fold(summed, seen);
    if (position + 1 < std::ssize(ids)) continue;
    FillLogits(summed, row);
    ids.push_back(sampler.Sample(row, request.sampling(), {ids, prompt}, choice).id);
    const auto generated = static_cast<int32_t>(ids.size()) - prompt;
    if (engine::EndOf(request.sampling(), ids.back(), generated) != engine::EndReason::kNone) break;
  }
  return {ids.begin() + prompt, ids.end()};
}

}  // namespace setu::simulator
