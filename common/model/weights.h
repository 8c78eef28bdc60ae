// SPDX-License-Identifier: Apache-2.0
// A model's weights, packed by the Ops that will multiply with them.
#ifndef SETU_COMMON_MODEL_WEIGHTS_H_
#define SETU_COMMON_MODEL_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/gguf.h"
#include "common/model/model_config.h"
#include "kernels/ops.h"

namespace setu::model {

using Matrix = std::unique_ptr<kernels::PackedMatrix>;
using Vector = std::vector<float>;  // empty: the model has none

struct LayerWeights {
  Vector attention_norm;  // [hidden]
  Matrix wq;              // [heads * head_dim, hidden]
  Matrix wk, wv;          // [kv_heads * head_dim, hidden]
  Vector bq, bk, bv;      // [rows of wq, wk, wv]
  Vector q_norm, k_norm;  // [head_dim]
  Matrix wo;              // [hidden, heads * head_dim]
  Vector ffn_norm;        // [hidden]
  Matrix w_gate, w_up;    // [ffn_hidden, hidden]
  Matrix w_down;          // [hidden, ffn_hidden]
};

struct Weights {
  Matrix embedding;                  // [vocabulary, hidden]
  std::vector<LayerWeights> layers;  // [layers]
  Vector output_norm;                // [hidden]
  Matrix output;                     // [vocabulary, hidden]; null: tied, use embedding
  const kernels::PackedMatrix& logits() const { return output ? *output : *embedding; }
  size_t packed_bytes = 0;
  uint64_t digest = 0;  // of config-bearing metadata and every tensor's bytes
};

// Called with the share of bytes done, 0 to 1.
using Progress = std::function<void(double)>;

// Every tensor of the file must be assigned and every field filled, else INVALID_ARGUMENT names it.
// Pages of the file are released as they are packed.
absl::StatusOr<Weights> LoadWeights(const GgufFile& file, const ModelConfig& config,
                                    kernels::Ops& ops, const Progress& progress);

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_WEIGHTS_H_
