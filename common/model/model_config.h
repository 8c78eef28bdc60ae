// SPDX-License-Identifier: Apache-2.0
// A decoder-only transformer described by its parts. An architecture is data here; the forward
// pass asks the parts, never the name.
#ifndef SETU_COMMON_MODEL_MODEL_CONFIG_H_
#define SETU_COMMON_MODEL_MODEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/gguf.h"
#include "kernels/ops.h"

namespace setu::model {

struct RopeScaling {
  enum class Kind { kNone, kLinear, kLlama3, kYarn };
  Kind kind = Kind::kNone;
  float factor = 1.0f;
  int32_t original_context = 0;
  float low_freq_factor = 1.0f, high_freq_factor = 4.0f;          // llama3
  float attn_factor = 1.0f, beta_fast = 32.0f, beta_slow = 1.0f;  // yarn
  float ext_factor = 1.0f;                                        // yarn
  std::vector<float> frequency_divisors;  // rope_freqs.weight, [rotary_dim / 2], llama3 files
};

struct ModelConfig {
  std::string name;
  std::string architecture;  // llama, qwen2, qwen3, ...
  std::string quantization;  // Q4_1, ...: the type that most weight bytes have
  int32_t context_length = 0;
  int32_t layers = 0;
  int32_t hidden = 0;
  int32_t ffn_hidden = 0;
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t vocabulary = 0;
  float norm_eps = 1e-5f;
  kernels::RopeKind rope_kind = kernels::RopeKind::kInterleaved;
  float rope_base = 10000.0f;
  int32_t rotary_dim = 0;
  RopeScaling rope_scaling;
  bool qkv_bias = false;
  bool qk_norm = false;
  bool tied_embeddings = false;
};

// INVALID_ARGUMENT names the key and what is wrong with it; an unknown architecture lists the
// known ones.
absl::StatusOr<ModelConfig> ReadModelConfig(const GgufFile& file);

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_MODEL_CONFIG_H_
