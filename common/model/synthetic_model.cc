// SPDX-License-Identifier: Apache-2.0
#include "common/model/synthetic_model.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "kernels/quantise.h"
#include "kernels/tensor.h"

namespace setu::model {
namespace {

using kernels::WeightType;

constexpr char kChatTemplate[] =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a tiny test model<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

// Pairs that BPE joins, best first; each makes one token. "Ġ" stands for a space.
constexpr const char* kMerges[] = {"Ġ t", "Ġ a", "i n", "h e",   "Ġt he", "r e",  "o n", "e r",
                                   "l l", "Ġ w", "o r", "Ġw or", "l d",   "e ll", "Ġ Ġ"};

// The value of that index among those of a seed: of mean 0 and variance 1, near enough to normal,
// the same on every machine. splitmix64, then four of its 16-bit pieces as uniform values, summed.
float Normal(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<float>((z >> (16 * i)) & 0xffff) / 65535;
  return (sum - 2) * std::sqrt(3.0f);
}

std::string Utf8(uint32_t code) {  // below 0x800
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// GPT-2's alphabet: bytes that print stand for themselves and come first, the others follow as
// the code points from 256 on.
void AppendByteTokens(std::vector<std::string>* tokens) {
  auto prints = [](uint32_t b) {
    return (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
  };
  for (uint32_t b = 0; b < 256; ++b) {
    if (prints(b)) tokens->push_back(Utf8(b));
  }
  for (uint32_t b = 0, code = 256; b < 256; ++b) {
    if (!prints(b)) tokens->push_back(Utf8(code++));
  }
}

void SetTokenizer(GgufWriter* writer, uint32_t vocabulary) {
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  std::vector<int32_t> types(tokens.size(), 3);  // control
  std::vector<std::string> merges(std::begin(kMerges), std::end(kMerges));
  AppendByteTokens(&tokens);
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ');
    tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  SETU_CHECK(tokens.size() == kSyntheticVocabulary, "kSyntheticVocabulary counts the tokens");
  while (tokens.size() < vocabulary) tokens.push_back(absl::StrCat("Ġword", tokens.size()));
  types.resize(tokens.size(), 1);  // normal
  writer->Set("tokenizer.ggml.add_space_prefix", false)
      .Set("tokenizer.ggml.add_bos_token", false)
      .Set("tokenizer.ggml.model", "gpt2")
      .Set("tokenizer.ggml.pre", "smollm")
      .Set("tokenizer.ggml.tokens", tokens)
      .Set("tokenizer.ggml.token_type", types)
      .Set("tokenizer.ggml.merges", merges)
      .Set("tokenizer.ggml.bos_token_id", uint32_t{kSyntheticStart})
      .Set("tokenizer.ggml.eos_token_id", uint32_t{kSyntheticEnd})
      .Set("tokenizer.ggml.unknown_token_id", uint32_t{kSyntheticEndOfText})
      .Set("tokenizer.ggml.padding_token_id", uint32_t{kSyntheticEnd})
      .Set("tokenizer.chat_template", kChatTemplate);
}

void SetShape(GgufWriter* writer, const SyntheticModelOptions& o) {
  auto key = [&](const char* name) { return absl::StrCat(o.architecture, ".", name); };
  writer->Set("general.architecture", o.architecture)
      .Set("general.type", "model")
      .Set("general.name", o.name)
      .Set(key("block_count"), o.layers)
      .Set(key("context_length"), o.context)
      .Set(key("embedding_length"), o.hidden)
      .Set(key("feed_forward_length"), o.ffn_hidden)
      .Set(key("attention.head_count"), o.heads)
      .Set(key("attention.head_count_kv"), o.kv_heads)
      .Set(key("rope.freq_base"), 10000.0f)
      .Set(key("attention.layer_norm_rms_epsilon"), 1e-5f)
      .Set(key("vocab_size"), o.vocabulary)
      .Set("general.quantization_version", uint32_t{2});
  if (o.architecture == "qwen3" || o.head_dim * o.heads != o.hidden) {
    writer->Set(key("attention.key_length"), o.head_dim)
        .Set(key("attention.value_length"), o.head_dim);
  }
}

}  // namespace

absl::StatusOr<WeightMix> ParseWeightMix(std::string_view name) {
  constexpr std::pair<std::string_view, WeightType> kMixes[] = {{"q4_k_m", WeightType::kQ4_K},
                                                                {"q5_k_m", WeightType::kQ5_K}};
  std::string known;
  for (const WeightType type : kernels::kWeightTypes) {
    const std::string text = absl::AsciiStrToLower(kernels::WeightTypeName(type));
    if (name == text) return WeightMix{type, std::nullopt};
    absl::StrAppend(&known, text, ", ");
  }
  for (const auto& [mix, most] : kMixes) {
    if (name == mix) return WeightMix{most, WeightType::kQ6_K};
  }
  return absl::InvalidArgumentError(absl::StrCat("weight type '", std::string(name),
                                                 "' is not one of ", known, "q4_k_m, q5_k_m"));
}

class SyntheticModel::TensorAdder {
 public:
  TensorAdder(SyntheticModel* model, const SyntheticModelOptions& options)
      : model_(model), options_(options) {}

  void Layer(uint32_t layer) {
    constexpr float kResidualGain = 3;  // what layers add outweighs the token itself
    const SyntheticModelOptions& o = options_;
    const uint32_t q = o.heads * o.head_dim, kv = o.kv_heads * o.head_dim;
    const WeightType most = o.weights.most, important = OfImportant(layer);
    const std::string block = absl::StrCat("blk.", layer, ".");
    Norm(block + "attn_norm.weight", o.hidden);
    Linear(block + "ffn_down.weight", important, o.hidden, o.ffn_hidden, kResidualGain);
    Linear(block + "ffn_gate.weight", most, o.ffn_hidden, o.hidden, 1);
    Linear(block + "ffn_up.weight", most, o.ffn_hidden, o.hidden, 1);
    Norm(block + "ffn_norm.weight", o.hidden);
    Linear(block + "attn_k.weight", most, kv, o.hidden, 1.5f);
    Linear(block + "attn_output.weight", most, o.hidden, q, kResidualGain);
    Linear(block + "attn_q.weight", most, q, o.hidden, 1.5f);
    Linear(block + "attn_v.weight", important, kv, o.hidden, 1);
    if (o.architecture == "qwen2") {
      Vector(block + "attn_q.bias", q, 0, 0.3f);
      Vector(block + "attn_k.bias", kv, 0, 0.3f);
      Vector(block + "attn_v.bias", kv, 0, 0.3f);
    }
    if (o.architecture == "qwen3") {
      Norm(block + "attn_q_norm.weight", o.head_dim);
      Norm(block + "attn_k_norm.weight", o.head_dim);
    }
  }
  // One row per token; `output`: it makes the logits.
  void Tokens(const char* name, bool output) {
    const WeightMix& weights = options_.weights;
    Add(name, output ? weights.important.value_or(weights.most) : weights.most,
        {options_.hidden, options_.vocabulary}, 0, 1);
  }
  void Vector(std::string_view name, uint32_t size, float mean, float deviation) {
    Add(name, WeightType::kF32, {size}, mean, deviation);
  }

 private:
  WeightType OfImportant(uint32_t layer) const {
    const uint32_t eighth = options_.layers / 8;
    const bool more =
        layer < eighth || layer >= 7 * options_.layers / 8 || (layer - eighth) % 3 == 2;
    return more ? options_.weights.important.value_or(options_.weights.most)
                : options_.weights.most;
  }
  // Scaled so that outputs have the variance of inputs, times `gain`.
  void Linear(std::string_view name, WeightType type, uint32_t rows, uint32_t cols, float gain) {
    Add(name, type, {cols, rows}, 0, gain / std::sqrt(static_cast<float>(cols)));
  }
  void Norm(std::string_view name, uint32_t size) { Vector(name, size, 1, 0.1f); }
  void Add(std::string_view name, WeightType type, const std::vector<uint64_t>& shape, float mean,
           float deviation) {
    model_->layout_.Reserve(name, type, shape);
    model_->distributions_.push_back({mean, deviation, values_});
    uint64_t values = 1;
    for (const uint64_t size : shape) values *= size;
    values_ += values;
  }

  SyntheticModel* model_;
  const SyntheticModelOptions& options_;
  uint64_t values_ = 0;  // of all tensors so far
};

SyntheticModel::SyntheticModel(const SyntheticModelOptions& options) : seed_(options.seed) {
  SetShape(&layout_, options);
  SetTokenizer(&layout_, options.vocabulary);
  TensorAdder add(this, options);
  add.Tokens("token_embd.weight", options.tied);
  for (uint32_t layer = 0; layer < options.layers; ++layer) add.Layer(layer);
  // Around 0, not 1: with a tied output each token would else be its own likeliest successor.
  add.Vector("output_norm.weight", options.hidden, 0, 0.4f);
  if (!options.tied) add.Tokens("output.weight", true);
}

int64_t SyntheticModel::Rows(size_t tensor) const {
  const std::vector<uint64_t>& shape = layout_.tensors[tensor].shape;
  return shape.size() == 1 ? 1 : static_cast<int64_t>(shape[1]);
}

int64_t SyntheticModel::Cols(size_t tensor) const {
  return static_cast<int64_t>(layout_.tensors[tensor].shape[0]);
}

int64_t SyntheticModel::RowBytes(size_t tensor) const {
  return static_cast<int64_t>(layout_.tensors[tensor].reserved) / Rows(tensor);
}

void SyntheticModel::WriteRow(size_t tensor, int64_t row, std::span<float> values,
                              std::byte* out) const {
  const auto& [mean, deviation, first_of_tensor] = distributions_[tensor];
  const uint64_t first = first_of_tensor + static_cast<uint64_t>(row * Cols(tensor));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = mean + deviation * Normal(seed_, first + i);
  }
  kernels::QuantiseRow(static_cast<WeightType>(layout_.tensors[tensor].type), values.data(),
                       Cols(tensor), out);
}

}  // namespace setu::model
