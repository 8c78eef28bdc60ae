// SPDX-License-Identifier: Apache-2.0
#include "tests/services/decode/fake_prefill.h"

#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/wire/checksum.h"
#include "tests/support/tiny_model.h"

namespace setu::decode {

std::unique_ptr<engine::ModelRunner> LoadTiny(const std::string& path, int32_t blocks) {
  constexpr int64_t kBlockBytes = 2 * 2 * 2 * 16 * 16 * 4;  // layers, k|v, heads, tokens, dim, f32
  engine::RunnerOptions options;
  options.model_path = path;
  options.cpu = {.path = kernels::NumericPath::kF32, .isa = "portable", .threads = 1};
  options.kv_memory_bytes = blocks * kBlockBytes;
  auto runner = engine::ModelRunner::Load(options, nullptr);
  SETU_CHECK(runner.ok(), runner.status().ToString().c_str());
  SETU_CHECK((*runner)->pool().total() == blocks, "the tiny model has blocks of 8 KiB");
  return *std::move(runner);
}

wire::Sequence Prompt(const std::string& uuid, int32_t tokens, int32_t max_tokens,
                      std::vector<uint32_t> choices) {
  wire::Sequence sequence;
  sequence.uuid = uuid;
  for (int32_t i = 0; i < tokens; ++i) {
    sequence.ids.push_back(test::kTinyFirstByte + (i * 37 + tokens * 11 + uuid.back()) % 256);
  }
  sequence.prompt_length = tokens;
  sequence.sampling.max_tokens = max_tokens;
  sequence.sampling.seed = tokens;
  sequence.choices = std::move(choices);
  return sequence;
}

FakePrefill::FakePrefill(const std::string& path)
    : runner_(LoadTiny(path, 64)), sampler_(runner_->config().vocabulary) {}

PushedKv FakePrefill::Compute(const wire::Sequence& sequence, uint32_t attempt,
                              int32_t blocks_held) {
  const kv::KvLayout& layout = runner_->storage().layout();
  const auto lease =
      runner_->pool().Take(kv::BlocksFor(std::ssize(sequence.ids), layout.block_tokens));
  const engine::StepEntry entry{
      .ids = sequence.ids, .start = 0, .blocks = lease->blocks(), .want_logits = true};
  const kernels::ConstMatrix logits = runner_->Step({&entry, 1});

  PushedKv pushed;
  pushed.manifest.set_uuid(sequence.uuid);
  pushed.manifest.set_attempt(attempt);
  *pushed.manifest.mutable_fingerprint() = wire::ToProto(runner_->fingerprint());
  pushed.manifest.set_token_count(sequence.ids.size());
  pushed.manifest.set_ids_digest(wire::IdsDigest(sequence.ids));
  pushed.manifest.set_first_block(blocks_held);
  pushed.manifest.set_wire_version(wire::kWireVersion);
  for (int32_t layer = 0; layer < layout.layers; ++layer) {
    for (int32_t block = blocks_held; block < lease->size(); ++block) {
      worker::v1::Frame& frame = pushed.frames.emplace_back();
      frame.set_first_block(block);
      frame.set_block_count(1);
      frame.set_layer(layer);
      const auto piece = std::as_const(runner_->storage()).Piece(lease->blocks()[block], layer);
      frame.set_data(piece.data(), piece.size());
      frame.set_crc32c(wire::Crc32cOf(frame, piece));
    }
  }
  for (uint32_t choice : sequence.choices) {
    wire::FirstToken first{choice, Sample(logits, sequence, sequence.ids, choice)};
    const int32_t generated = std::ssize(sequence.ids) + 1 - sequence.prompt_length;
    first.end = engine::EndOf(sequence.sampling, first.token.id, generated);
    *pushed.commit.add_first_tokens() = wire::ToProto(first);
  }
  pushed.commit.set_kv_bytes((lease->size() - blocks_held) * layout.block_bytes());
  pushed.commit.set_crc32c(wire::Crc32cOf(pushed.commit, sequence.uuid, attempt));
  return pushed;
}

std::vector<engine::TokenId> FakePrefill::Alone(const wire::Sequence& sequence, uint32_t choice) {
  std::vector<engine::TokenId> ids = sequence.ids;
  const int32_t most = sequence.prompt_length + sequence.sampling.max_tokens;
  const auto lease = runner_->pool().Take(kv::BlocksFor(most, runner_->options().block_tokens));
  size_t computed = 0;
  engine::EndReason end = engine::EndReason::kNone;
  while (end == engine::EndReason::kNone) {
    const engine::StepEntry entry{.ids = std::span(ids).subspan(computed),
                                  .start = static_cast<int32_t>(computed),
                                  .blocks = lease->blocks(),
                                  .want_logits = true};
    const kernels::ConstMatrix logits = runner_->Step({&entry, 1});
    computed = ids.size();
    ids.push_back(Sample(logits, sequence, ids, choice).id);
    end = engine::EndOf(sequence.sampling, ids.back(), std::ssize(ids) - sequence.prompt_length);
  }
  ids.erase(ids.begin(), ids.begin() + std::ssize(sequence.ids));
  return ids;
}

engine::SampledToken FakePrefill::Sample(kernels::ConstMatrix logits,
                                         const wire::Sequence& sequence,
                                         const std::vector<engine::TokenId>& ids, uint32_t choice) {
  return sampler_.Sample({logits.Row(0), static_cast<size_t>(logits.cols)}, sequence.sampling,
                         {ids, sequence.prompt_length}, choice);
}

}  // namespace setu::decode
