// SPDX-License-Identifier: Apache-2.0
// A seeded model of a few hundred kilobytes that a test makes in milliseconds: random weights, a
// byte-level vocabulary with a few merges, the keys and the ChatML template of SmolLM2. Its greedy
// text wanders and ends now and then.
//
//   TempDir dir;
//   std::string path = WriteTinyModel(dir);
//   std::string other = WriteTinyModel(dir, {.seed = 3, .architecture = "qwen3"}, "other.gguf");
//   model::GgufWriter wrong = TinyModel({});                     // or a damaged one
//   wrong.Set("llama.block_count", uint32_t{0});
#ifndef SETU_TESTS_SUPPORT_TINY_MODEL_H_
#define SETU_TESTS_SUPPORT_TINY_MODEL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/model/gguf_writer.h"
#include "common/model/synthetic_model.h"
#include "kernels/tensor.h"
#include "tests/support/temp_dir.h"

namespace setu::test {

struct TinyModelOptions {
  uint64_t seed = 2;
  std::string architecture = "llama";                       // llama, qwen2, qwen3
  kernels::WeightType weights = kernels::WeightType::kF32;  // matrices; norms and biases stay F32
  bool tied = true;
  uint32_t layers = 2;
  uint32_t hidden = 64;
  uint32_t ffn_hidden = 128;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 16;
  uint32_t context = 512;
};

// Ids of the vocabulary: three control tokens, then the 256 bytes, then the merged tokens.
inline constexpr int32_t kTinyEndOfText = model::kSyntheticEndOfText;
inline constexpr int32_t kTinyStart = model::kSyntheticStart;  // <|im_start|>, declared as BOS
inline constexpr int32_t kTinyEnd = model::kSyntheticEnd;      // <|im_end|>, declared as EOS
inline constexpr int32_t kTinyFirstByte = model::kSyntheticFirstByte;
inline constexpr int32_t kTinyVocabulary = model::kSyntheticVocabulary;

model::GgufWriter TinyModel(const TinyModelOptions& options);
// Writes it and returns the path.
std::string WriteTinyModel(const TempDir& dir, const TinyModelOptions& options = {},
                           std::string_view name = "tiny.gguf");

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_TINY_MODEL_H_
