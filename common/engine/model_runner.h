// SPDX-License-Identifier: Apache-2.0
// A loaded model with its pool of KV blocks.
//
//   SETU_ASSIGN_OR_RETURN(auto runner, ModelRunner::Load({.model_path = "m.gguf"}, progress));
//   ConstMatrix logits = runner->Step(entries, on_layer);   // [entries that want logits, vocab]
#ifndef SETU_COMMON_ENGINE_MODEL_RUNNER_H_
#define SETU_COMMON_ENGINE_MODEL_RUNNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/engine/runner.h"
#include "common/model/gguf.h"
#include "common/model/model_config.h"
#include "common/model/transformer.h"
#include "common/model/weights.h"
#include "kernels/device.h"

namespace setu::engine {

// Of all metadata that decides ids or chats: RunnerFingerprint::tokenizer, without loading weights.
uint64_t TokenizerDigest(const model::GgufFile& file);

class ModelRunner final : public Runner {
 public:
  static absl::StatusOr<std::unique_ptr<ModelRunner>> Load(const RunnerOptions& options,
                                                           const model::Progress& progress);

  kernels::ConstMatrix Step(std::span<const StepEntry> entries,
                            const model::LayerDone& layer_done = nullptr) override;

  kernels::Ops& ops() { return *ops_; }
  model::Transformer& transformer() { return *transformer_; }
  const model::Weights& weights() const { return weights_; }
  // None where RunnerOptions::cache_packed asks for none.
  const std::optional<model::CacheUse>& cache_use() const { return cache_use_; }
  size_t weight_bytes() const { return weights_.packed_bytes; }
  // Of them, what a step with logits reads: all but an untied embedding, of which it reads rows.
  size_t step_weight_bytes() const {
    return weights_.packed_bytes - (weights_.output ? weights_.embedding->bytes() : 0);
  }

 private:
  ModelRunner() = default;
  absl::Status LoadWeights(const model::GgufFile& file, const model::Progress& progress);
  uint64_t DigestLogits();

  std::unique_ptr<kernels::Ops> ops_;
  model::Weights weights_;
  std::optional<model::CacheUse> cache_use_;
  std::unique_ptr<model::Transformer> transformer_;
  std::vector<int32_t> ids_;                      // [max_rows], scratch of Step
  std::vector<kernels::SequenceRows> sequences_;  // scratch of Step
  std::vector<int32_t> logit_rows_;               // scratch of Step
};

}  // namespace setu::engine

#endif  // SETU_COMMON_ENGINE_MODEL_RUNNER_H_
