// SPDX-License-Identifier: Apache-2.0
// A model's weights, packed by the Ops that will multiply with them.
#ifndef SETU_COMMON_MODEL_WEIGHTS_H_
#define SETU_COMMON_MODEL_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
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
  size_t packed_bytes = 0;  // of matrices and vectors
  uint64_t digest = 0;      // of config-bearing metadata, every tensor's bytes and what it became
};

// What matrices of F32, F16 and BF16 become as they are packed. Quantised ones stay as they are,
// and so do those whose rows are not whole groups of 32. Int4 leaves the embedding and the output
// at int8: they are read by row or once per token, and roundings there cost most.
enum class FloatWeights : uint8_t { kAsInFile, kInt8, kInt4 };

// "auto", "int8" or "int4"; anything else is INVALID_ARGUMENT.
absl::StatusOr<FloatWeights> ParseFloatWeights(const std::string& name);
// The name that ParseFloatWeights knows it by.
const char* FloatWeightsName(FloatWeights floats);
// What a tensor is packed as.
kernels::WeightType PackedType(const GgufTensor& tensor, FloatWeights floats);
// And what it, or all tensors of a file, take then; in memory a little more.
int64_t PackedBytes(const GgufTensor& tensor, FloatWeights floats);
int64_t PackedBytes(const GgufFile& file, FloatWeights floats);
// Q4_1, ...: the type of most of these bytes.
std::string MainType(const GgufFile& file, FloatWeights floats);

// Called with the share of bytes done, 0 to 1.
using Progress = std::function<void(double)>;

// Every tensor of the file must be assigned and every field filled, else INVALID_ARGUMENT names it.
// Pages of the file are released as they are packed.
absl::StatusOr<Weights> LoadWeights(const GgufFile& file, const ModelConfig& config,
                                    FloatWeights floats, kernels::Ops& ops,
                                    const Progress& progress);

// What became of the cache beside a model (packed_cache.h).
struct CacheUse {
  std::string path;
  int64_t bytes = 0;
  absl::Status read;     // else why the weights were packed
  absl::Status written;  // after they were
};
struct CachedWeights {
  Weights weights;
  CacheUse cache;
};

// The same weights out of the cache beside the file; where it is not valid, packed, and written
// there for the next load. A cache that cannot be read or written is no error.
absl::StatusOr<CachedWeights> LoadCachedWeights(const GgufFile& file, const ModelConfig& config,
                                                FloatWeights floats, kernels::Ops& ops,
                                                const Progress& progress);

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_WEIGHTS_H_
