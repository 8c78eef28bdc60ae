// SPDX-License-Identifier: Apache-2.0
// A model of any shape with seeded random weights: for speed, where a real one of that shape does
// not fit or cannot be had, and for tests. Its vocabulary is the bytes, a few merges, and words
// that no text has; keys and chat template are those of SmolLM2. Other engines load it too. Its
// greedy text wanders.
//
//   const SyntheticModel model({.layers = 16, .hidden = 2048, .weights = {WeightType::kQ8_0}});
//   model.layout().Header();                       // then, at the Offsets() of each tensor i:
//   model.WriteRow(i, row, values, out);           // from any thread, in any order
//
// A value depends on the seed and on its place in the model alone, so that models that differ in
// weight type only are the same model, rounded differently.
#ifndef SETU_COMMON_MODEL_SYNTHETIC_MODEL_H_
#define SETU_COMMON_MODEL_SYNTHETIC_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/gguf_writer.h"
#include "kernels/types.h"

namespace setu::model {

// Types of the matrices; norms and biases are F32.
struct WeightMix {
  kernels::WeightType most = kernels::WeightType::kF32;
  // Of what llama-quantize keeps in more bits: the output matrix (or the embedding that is it), and
  // attn_v and ffn_down of the first and the last eighth of the layers and of every third between.
  std::optional<kernels::WeightType> important;
};

// "q8_0": all of that type; "q4_k_m", "q5_k_m": the mixes of that name. INVALID_ARGUMENT lists
// them.
absl::StatusOr<WeightMix> ParseWeightMix(std::string_view name);

struct SyntheticModelOptions {
  uint64_t seed = 2;
  std::string name = "synthetic";
  std::string architecture = "llama";  // llama, qwen2, qwen3
  WeightMix weights;
  bool tied = true;  // the embedding is the output matrix
  uint32_t layers = 2;
  uint32_t hidden = 64;
  uint32_t ffn_hidden = 128;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 16;
  uint32_t context = 512;
  uint32_t vocabulary = 274;  // at least kSyntheticVocabulary
};

// Ids: three control tokens, then the 256 bytes, then the merged tokens, then words.
inline constexpr int32_t kSyntheticEndOfText = 0;
inline constexpr int32_t kSyntheticStart = 1;  // <|im_start|>, declared as BOS, as SmolLM2 does
inline constexpr int32_t kSyntheticEnd = 2;    // <|im_end|>, declared as EOS
inline constexpr int32_t kSyntheticFirstByte = 3;
inline constexpr int32_t kSyntheticVocabulary = 3 + 256 + 15;  // without words

class SyntheticModel {
 public:
  // Options that make no model that can be read give a file that cannot be read.
  explicit SyntheticModel(const SyntheticModelOptions& options);

  // Metadata, and every tensor reserved.
  const GgufWriter& layout() const { return layout_; }
  int64_t Rows(size_t tensor) const;
  int64_t Cols(size_t tensor) const;
  int64_t RowBytes(size_t tensor) const;
  // The bytes of a row to out[RowBytes]; `values`, [Cols], is scratch.
  void WriteRow(size_t tensor, int64_t row, std::span<float> values, std::byte* out) const;

 private:
  struct Distribution {
    float mean, deviation;
    uint64_t first;  // of the tensor's values among those of the model
  };
  class TensorAdder;

  GgufWriter layout_;
  std::vector<Distribution> distributions_;  // of layout_.tensors
  uint64_t seed_;
};

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_SYNTHETIC_MODEL_H_
