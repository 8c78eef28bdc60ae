// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tiny_model.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "tests/support/quantize.h"

namespace setu::test {
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

// Values of mean 0 and variance 1, near enough to normal, the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  float Next() {
    // splitmix64; then four of its 16-bit pieces as uniform values, summed.
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<float>((z >> (16 * i)) & 0xffff) / 65535;
    return (sum - 2) * std::sqrt(3.0f);
  }

 private:
  uint64_t state_;
};

class TensorAdder {
 public:
  TensorAdder(GgufWriter* writer, const TinyModelOptions& options)
      : writer_(writer), type_(options.weights), random_(options.seed) {}

  void Matrix(std::string_view name, uint32_t rows, uint32_t cols, float deviation) {
    writer_->Add(name, type_, {cols, rows}, Quantize(Values(rows * cols, 0, deviation), type_));
  }
  // Scaled so that outputs have the variance of inputs, times `gain`.
  void Linear(std::string_view name, uint32_t rows, uint32_t cols, float gain) {
    Matrix(name, rows, cols, gain / std::sqrt(static_cast<float>(cols)));
  }
  void Vector(std::string_view name, uint32_t size, float mean, float deviation) {
    writer_->Add(name, WeightType::kF32, {size},
                 Quantize(Values(size, mean, deviation), WeightType::kF32));
  }
  void Norm(std::string_view name, uint32_t size) { Vector(name, size, 1, 0.1f); }

 private:
  std::vector<float> Values(uint32_t count, float mean, float deviation) {
    std::vector<float> values(count);
    for (float& value : values) value = mean + deviation * random_.Next();
    return values;
  }

  GgufWriter* writer_;
  WeightType type_;
  Random random_;
};

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

void SetTokenizer(GgufWriter* writer) {
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  std::vector<int32_t> types(tokens.size(), 3);  // control
  std::vector<std::string> merges(std::begin(kMerges), std::end(kMerges));
  AppendByteTokens(&tokens);
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ');
    tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  types.resize(tokens.size(), 1);  // normal
  SETU_CHECK(tokens.size() == kTinyVocabulary, "kTinyVocabulary counts the tokens");
  writer->Set("tokenizer.ggml.add_space_prefix", false)
      .Set("tokenizer.ggml.add_bos_token", false)
      .Set("tokenizer.ggml.model", "gpt2")
      .Set("tokenizer.ggml.pre", "smollm")
      .Set("tokenizer.ggml.tokens", tokens)
      .Set("tokenizer.ggml.token_type", types)
      .Set("tokenizer.ggml.merges", merges)
      .Set("tokenizer.ggml.bos_token_id", uint32_t{kTinyStart})
      .Set("tokenizer.ggml.eos_token_id", uint32_t{kTinyEnd})
      .Set("tokenizer.ggml.unknown_token_id", uint32_t{kTinyEndOfText})
      .Set("tokenizer.ggml.padding_token_id", uint32_t{kTinyEnd})
      .Set("tokenizer.chat_template", kChatTemplate);
}

void SetShape(GgufWriter* writer, const TinyModelOptions& o) {
  auto key = [&](const char* name) { return absl::StrCat(o.architecture, ".", name); };
  writer->Set("general.architecture", o.architecture)
      .Set("general.type", "model")
      .Set("general.name", absl::StrCat("Tiny ", o.architecture, " ", o.seed))
      .Set(key("block_count"), o.layers)
      .Set(key("context_length"), o.context)
      .Set(key("embedding_length"), o.hidden)
      .Set(key("feed_forward_length"), o.ffn_hidden)
      .Set(key("attention.head_count"), o.heads)
      .Set(key("attention.head_count_kv"), o.kv_heads)
      .Set(key("rope.freq_base"), 10000.0f)
      .Set(key("attention.layer_norm_rms_epsilon"), 1e-5f)
      .Set(key("vocab_size"), uint32_t{kTinyVocabulary})
      .Set("general.quantization_version", uint32_t{2});
  if (o.architecture == "qwen3" || o.head_dim * o.heads != o.hidden) {
    writer->Set(key("attention.key_length"), o.head_dim)
        .Set(key("attention.value_length"), o.head_dim);
  }
}

void AddLayer(TensorAdder* add, const TinyModelOptions& o, uint32_t layer) {
  constexpr float kResidualGain = 3;  // what layers add outweighs the token itself
  const uint32_t q = o.heads * o.head_dim, kv = o.kv_heads * o.head_dim;
  const std::string block = absl::StrCat("blk.", layer, ".");
  add->Norm(block + "attn_norm.weight", o.hidden);
  add->Linear(block + "ffn_down.weight", o.hidden, o.ffn_hidden, kResidualGain);
  add->Linear(block + "ffn_gate.weight", o.ffn_hidden, o.hidden, 1);
  add->Linear(block + "ffn_up.weight", o.ffn_hidden, o.hidden, 1);
  add->Norm(block + "ffn_norm.weight", o.hidden);
  add->Linear(block + "attn_k.weight", kv, o.hidden, 1.5f);
  add->Linear(block + "attn_output.weight", o.hidden, q, kResidualGain);
  add->Linear(block + "attn_q.weight", q, o.hidden, 1.5f);
  add->Linear(block + "attn_v.weight", kv, o.hidden, 1);
  if (o.architecture == "qwen2") {
    add->Vector(block + "attn_q.bias", q, 0, 0.3f);
    add->Vector(block + "attn_k.bias", kv, 0, 0.3f);
    add->Vector(block + "attn_v.bias", kv, 0, 0.3f);
  }
  if (o.architecture == "qwen3") {
    add->Norm(block + "attn_q_norm.weight", o.head_dim);
    add->Norm(block + "attn_k_norm.weight", o.head_dim);
  }
}

}  // namespace

GgufWriter TinyModel(const TinyModelOptions& options) {
  GgufWriter writer;
  SetShape(&writer, options);
  SetTokenizer(&writer);
  TensorAdder add(&writer, options);
  add.Matrix("token_embd.weight", kTinyVocabulary, options.hidden, 1);
  for (uint32_t layer = 0; layer < options.layers; ++layer) AddLayer(&add, options, layer);
  // Around 0, not 1: with a tied output each token would else be its own likeliest successor.
  add.Vector("output_norm.weight", options.hidden, 0, 0.4f);
  if (!options.tied) add.Matrix("output.weight", kTinyVocabulary, options.hidden, 1);
  return writer;
}

std::string WriteTinyModel(const TempDir& dir, const TinyModelOptions& options,
                           std::string_view name) {
  return dir.Write(name, TinyModel(options).Bytes());
}

}  // namespace setu::test
