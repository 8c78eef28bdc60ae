// SPDX-License-Identifier: Apache-2.0
// What a worker's step loop steps: a model with its pool of KV blocks. ModelRunner is the one that
// computes; a simulation has one that only pretends. Used by one thread after loading; the KV bytes
// alone are also read and written by transfers, under their leases.
//
//   ConstMatrix logits = runner.Step(entries, on_layer);   // [entries that want logits, vocab]
#ifndef SETU_COMMON_ENGINE_RUNNER_H_
#define SETU_COMMON_ENGINE_RUNNER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/engine/sampling_params.h"
#include "common/kv/block_pool.h"
#include "common/kv/kv_storage.h"
#include "common/model/model_config.h"
#include "common/model/transformer.h"
#include "common/model/weights.h"
#include "kernels/device.h"

namespace setu::engine {

struct RunnerOptions {
  std::string model_path;
  kernels::CpuOptions cpu;
  model::FloatWeights float_weights = model::FloatWeights::kAsInFile;
  bool cache_packed = false;  // keep packed weights beside the model (model/packed_cache.h)
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

class Runner {
 public:
  virtual ~Runner() = default;

  // Logits of the entries that want them, in order: [wanted, vocabulary]; valid until the next
  // Step. At most max_rows ids and max_logits wanted rows in all. `layer_done` hears of each layer.
  virtual kernels::ConstMatrix Step(std::span<const StepEntry> entries,
                                    const model::LayerDone& layer_done = nullptr) = 0;

  const model::ModelConfig& config() const { return config_; }
  const RunnerFingerprint& fingerprint() const { return fingerprint_; }
  const RunnerOptions& options() const { return options_; }
  kv::BlockPool& pool() { return *pool_; }
  kv::KvStorage& storage() { return *storage_; }
  // Tokens that one sequence may have: min(model context, whole pool).
  int32_t max_sequence_tokens() const;

 protected:
  RunnerOptions options_;
  model::ModelConfig config_;
  std::unique_ptr<kv::KvStorage> storage_;
  std::unique_ptr<kv::BlockPool> pool_;
  RunnerFingerprint fingerprint_;
};

}  // namespace setu::engine

#endif  // SETU_COMMON_ENGINE_RUNNER_H_
