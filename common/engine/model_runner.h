// SPDX-License-Identifier: Apache-2.0
// A loaded model with its pool of KV blocks: what a worker's step loop steps. Used by one thread
// after loading; the KV bytes alone are also read and written by transfers, under their leases.
//
//   SETU_ASSIGN_OR_RETURN(auto runner, ModelRunner::Load({.model_path = "m.gguf"}, progress));
//   ConstMatrix logits = runner->Step(entries, on_layer);   // [entries that want logits, vocab]
#ifndef SETU_COMMON_ENGINE_MODEL_RUNNER_H_
#define SETU_COMMON_ENGINE_MODEL_RUNNER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/engine/sampling_params.h"
#include "common/kv/block_pool.h"
#include "common/kv/kv_storage.h"
#include "common/model/gguf.h"
#include "common/model/model_config.h"
#include "common/model/transformer.h"
#include "common/model/weights.h"
#include "kernels/device.h"

namespace setu::engine {

struct RunnerOptions {
  std::string model_path;
  kernels::CpuOptions cpu;
  model::FloatWeights float_weights = model::FloatWeights::kAsInFile;
  // --kv-memory. 0: a quarter of the memory limit, at most 4 GiB. At most the limit less the
  // weights.
  int64_t kv_memory_bytes = 0;
  int32_t block_tokens = 16;
  int32_t max_rows = 512;             // tokens of one step
  int32_t max_logits = 64;            // sequences of one step that sample
  bool allow_mixed_numerics = false;  // as the fingerprint says
};

// One sequence's share of a step.
struct StepEntry {
  std::span<const TokenId> ids;         // new tokens only
  int32_t start = 0;                    // absolute position of ids[0]
  std::span<const kv::BlockId> blocks;  // the sequence's table, covering start + ids.size()
  bool want_logits = false;             // of the last id
};

// What two workers compare before they are paired.
struct RunnerFingerprint {
  uint64_t model = 0;
  uint64_t tokenizer = 0;
  std::string numerics;        // such as int8-g32/kv-f16/r1
  uint64_t logits_digest = 0;  // fixed 70-id prompt in chunks of 32, then 8 decode steps
  kv::KvLayout layout;
  bool allow_mixed_numerics = false;  // fits another path too, if that allows it as well

  bool operator==(const RunnerFingerprint&) const = default;
};

// Of all metadata that decides ids or chats: RunnerFingerprint::tokenizer, without loading weights.
uint64_t TokenizerDigest(const model::GgufFile& file);

class ModelRunner {
 public:
  static absl::StatusOr<std::unique_ptr<ModelRunner>> Load(const RunnerOptions& options,
                                                           const model::Progress& progress);

  // Logits of the entries that want them, in order: [wanted, vocabulary]; valid until the next
  // Step. At most max_rows ids and max_logits wanted rows in all.
  kernels::ConstMatrix Step(std::span<const StepEntry> entries,
                            const model::LayerDone& layer_done = nullptr);

  const model::ModelConfig& config() const { return config_; }
  const RunnerFingerprint& fingerprint() const { return fingerprint_; }
  const RunnerOptions& options() const { return options_; }
  kv::BlockPool& pool() { return *pool_; }
  kv::KvStorage& storage() { return *storage_; }
  kernels::Ops& ops() { return *ops_; }
  model::Transformer& transformer() { return *transformer_; }
  const model::Weights& weights() const { return weights_; }
  // Tokens that one sequence may have: min(model context, whole pool).
  int32_t max_sequence_tokens() const;
  size_t weight_bytes() const { return weights_.packed_bytes; }
  // Of them, what a step with logits reads: all but an untied embedding, of which it reads rows.
  size_t step_weight_bytes() const {
    return weights_.packed_bytes - (weights_.output ? weights_.embedding->bytes() : 0);
  }

 private:
  ModelRunner() = default;
  uint64_t DigestLogits();

  RunnerOptions options_;
  model::ModelConfig config_;
  std::unique_ptr<kernels::Ops> ops_;
  model::Weights weights_;
  std::unique_ptr<kv::KvStorage> storage_;
  std::unique_ptr<kv::BlockPool> pool_;
  std::unique_ptr<model::Transformer> transformer_;
  RunnerFingerprint fingerprint_;
  std::vector<int32_t> ids_;                      // [max_rows], scratch of Step
  std::vector<kernels::SequenceRows> sequences_;  // scratch of Step
  std::vector<int32_t> logit_rows_;               // scratch of Step
};

}  // namespace setu::engine

#endif  // SETU_COMMON_ENGINE_MODEL_RUNNER_H_
