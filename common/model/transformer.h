// SPDX-License-Identifier: Apache-2.0
// The forward pass: ids of a batch in, logits of the rows that asked for them out, K and V into
// the blocks of their sequences. Activations live in buffers taken at construction.
//
//   Transformer model(config, weights, ops, /*max_rows=*/512, /*max_logits=*/64);
//   ConstMatrix logits = model.Forward(batch, storage, [&](int layer) { ... });
#ifndef SETU_COMMON_MODEL_TRANSFORMER_H_
#define SETU_COMMON_MODEL_TRANSFORMER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/kv/kv_storage.h"
#include "common/model/model_config.h"
#include "common/model/rope.h"
#include "common/model/weights.h"
#include "kernels/line_buffer.h"
#include "kernels/ops.h"

namespace setu::model {

// All rows of one step, packed one sequence after another.
struct ForwardBatch {
  std::span<const int32_t> ids;                      // [rows]
  std::span<const kernels::SequenceRows> sequences;  // cover all rows in order
  std::span<const int32_t> logit_rows;               // rows whose logits are needed
};

// Called when the KV of `layer` is final for every row of the batch; later layers still compute.
using LayerDone = std::function<void(int32_t layer)>;

class Transformer {
 public:
  // `config`, `weights` and `ops` must outlive this.
  Transformer(const ModelConfig& config, const Weights& weights, kernels::Ops& ops,
              int32_t max_rows, int32_t max_logits);

  // [logit_rows, vocabulary]; valid until the next call.
  kernels::ConstMatrix Forward(const ForwardBatch& batch, kv::KvStorage& storage,
                               const LayerDone& layer_done = nullptr);

  // The parts of Forward, in its order, for whoever times them (common/roofline).
  void Embed(const ForwardBatch& batch);
  void Layer(int32_t layer, const ForwardBatch& batch, kv::KvStorage& storage,
             const LayerDone& layer_done);
  kernels::ConstMatrix Logits(const ForwardBatch& batch);

 private:
  const ModelConfig& config_;
  const Weights& weights_;
  kernels::Ops& ops_;
  int32_t max_rows_, max_logits_;
  RopeAngles rope_;
  kernels::LineBuffer<float> x_;             // [max_rows, hidden]
  kernels::LineBuffer<float> q_, attended_;  // [max_rows, heads * head_dim]
  kernels::LineBuffer<float> k_, v_;         // [max_rows, kv_heads * head_dim]
  kernels::LineBuffer<float> last_;          // [max_logits, hidden]
  kernels::LineBuffer<float> logits_;        // [max_logits, vocabulary]
};

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_TRANSFORMER_H_
