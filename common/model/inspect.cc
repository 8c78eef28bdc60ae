// SPDX-License-Identifier: Apache-2.0
#include "common/model/inspect.h"

#include <cstdint>
#include <map>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/model/gguf_cursor.h"
#include "common/model/model_config.h"

namespace setu::model {
namespace {

std::string Line(const char* label, const std::string& text) {
  return absl::StrFormat("%-14s %s\n", label, text);
}

std::string TextOf(const GgufFile& file, const char* key) {
  const auto text = file.String(key);
  return text.ok() ? Quoted(*text) : "none";
}

std::string ScalingText(const RopeScaling& scaling) {
  switch (scaling.kind) {
    case RopeScaling::Kind::kNone:
      return "";
    case RopeScaling::Kind::kLinear:
      return absl::StrCat(", linear scaling by ", scaling.factor);
    case RopeScaling::Kind::kLlama3:
      return ", scaled by rope_freqs.weight";
    case RopeScaling::Kind::kYarn:
      return absl::StrCat(", yarn scaling by ", scaling.factor, " from ", scaling.original_context);
  }
  return "";
}

std::string ConfigLines(const ModelConfig& c) {
  const int64_t kv_values = int64_t{2} * c.layers * c.kv_heads * c.head_dim;
  return Line("layers", absl::StrCat(c.layers)) +
         Line("context", absl::StrCat(c.context_length, " tokens")) +
         Line("width", absl::StrCat(c.hidden, ", feed-forward ", c.ffn_hidden)) +
         Line("attention", absl::StrCat(c.heads, " heads of ", c.head_dim, ", ", c.kv_heads,
                                        " for keys and values", c.qkv_bias ? ", biases" : "",
                                        c.qk_norm ? ", norms per head" : "")) +
         Line("rope", absl::StrCat("base ", c.rope_base, " over ", c.rotary_dim,
                                   ScalingText(c.rope_scaling))) +
         Line("vocabulary",
              absl::StrCat(c.vocabulary, " tokens",
                           c.tied_embeddings ? ", output tied to the embedding" : "")) +
         Line("KV per token",
              absl::StrCat(2 * kv_values, " bytes in f16, ", 4 * kv_values, " in f32"));
}

// "bos 1 '<|im_start|>'" for each key "tokenizer.ggml.bos_token_id".
std::string SpecialTokens(const GgufFile& file) {
  constexpr std::string_view kPrefix = "tokenizer.ggml.", kSuffix = "_token_id";
  const auto tokens = file.StringArray("tokenizer.ggml.tokens");
  std::string text;
  for (const auto& [key, value] : file.metadata()) {
    const auto id = file.Uint32(key);
    if (!key.starts_with(kPrefix) || !key.ends_with(kSuffix) || !id.ok()) continue;
    const std::string quoted =
        Quoted(key.substr(kPrefix.size(), key.size() - kPrefix.size() - kSuffix.size()));
    const std::string name = quoted.substr(1, quoted.size() - 2);  // plain, as names of tokens are
    const bool known = tokens.ok() && *id < (*tokens)->size();
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ", *id, " ",
                    known ? Quoted((**tokens)[*id]) : "(not in the vocabulary)");
  }
  return text.empty() ? "none" : text;
}

std::string TypeTable(const GgufFile& file) {
  struct Sum {
    int64_t tensors = 0, values = 0, bytes = 0;
  };
  std::map<std::string, Sum> sums;
  Sum all;
  for (const GgufTensor& tensor : file.tensors()) {
    for (Sum* sum : {&sums[kernels::WeightTypeName(tensor.type)], &all}) {
      sum->tensors += 1;
      sum->values += tensor.rows() * tensor.cols();
      sum->bytes += tensor.bytes;
    }
  }
  auto row = [](const std::string& name, const Sum& sum) {
    const double bits =
        sum.values > 0 ? 8.0 * static_cast<double>(sum.bytes) / static_cast<double>(sum.values) : 0;
    return absl::StrFormat("%-6s %8d %14d %14d %11.2f\n", name, sum.tensors, sum.values, sum.bytes,
                           bits);
  };
  std::string table = absl::StrFormat("%-6s %8s %14s %14s %11s\n", "type", "tensors", "values",
                                      "bytes", "bits/value");
  for (const auto& [name, sum] : sums) table += row(name, sum);
  return table + row("all", all);
}

}  // namespace

std::string Inspect(const GgufFile& file) {
  const auto chat_template = file.String("tokenizer.chat_template");
  const auto config = ReadModelConfig(file);
  std::string text = Line("file", absl::StrCat(file.path(), ", ", file.file_bytes(), " bytes"));
  text += Line("name", TextOf(file, "general.name"));
  text += Line("architecture", TextOf(file, "general.architecture"));
  text += config.ok() ? ConfigLines(*config)
                      : Line("not usable", std::string(config.status().message()));
  text += Line("tokenizer", absl::StrCat(TextOf(file, "tokenizer.ggml.model"), ", pre-tokenizer ",
                                         TextOf(file, "tokenizer.ggml.pre")));
  text += Line("special tokens", SpecialTokens(file));
  text += Line("chat template",
               chat_template.ok() ? absl::StrCat(chat_template->size(), " bytes") : "none");
  return text + "\n" + TypeTable(file);
}

}  // namespace setu::model
