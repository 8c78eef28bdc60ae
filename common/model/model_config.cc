// SPDX-License-Identifier: Apache-2.0
#include "common/model/model_config.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/model/gguf_cursor.h"
#include "common/model/weights.h"

namespace setu::model {
namespace {

using kernels::RopeKind;

struct Architecture {
  const char* name;
  RopeKind rope_kind;
  bool qkv_bias;
  bool qk_norm;
};

// Converters permute q and k of "llama" (Llama, Mistral, SmolLM2) so that pairs lie side by side.
constexpr Architecture kArchitectures[] = {
    {"llama", RopeKind::kInterleaved, /*qkv_bias=*/false, /*qk_norm=*/false},
    {"qwen2", RopeKind::kHalves, /*qkv_bias=*/true, /*qk_norm=*/false},
    {"qwen3", RopeKind::kHalves, /*qkv_bias=*/false, /*qk_norm=*/true},
};

// Keys that would change the forward pass in ways it does not have, unless they hold this value.
struct Neutral {
  const char* key;
  double value;
};
constexpr Neutral kNeutral[] = {
    {"expert_count", 0},
    {"expert_used_count", 0},
    {"attention.causal", 1},
    {"attention.sliding_window", 0},
    {"attention.clamp_kqv", 0},
    {"attention.max_alibi_bias", 0},
    {"attention.scale", 0},
    {"attn_logit_softcapping", 0},
    {"final_logit_softcapping", 0},
    {"logit_scale", 1},
    {"embedding_scale", 1},
    {"residual_scale", 1},
    {"rope.scale_linear", 1},
};

constexpr size_t kMaxNameBytes = 256;
constexpr int32_t kMaxLayers = 1024;
constexpr int32_t kMaxContext = 1 << 20;
constexpr int32_t kMaxWidth = 1 << 18;  // of hidden and ffn_hidden
constexpr int32_t kMaxHeads = 1024;
constexpr int32_t kMaxHeadDim = 256;  // with kMaxContext: a gigabyte of angles at most
constexpr int64_t kMaxVocabulary = 1 << 22;

template <typename T>
struct Range {
  T low, high;
};

// The number that a value is; nullopt for text and arrays.
std::optional<double> Number(const GgufFile::Value& value) {
  return std::visit(
      [](const auto& held) -> std::optional<double> {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(held)>>) {
          return static_cast<double>(held);
        }
        return std::nullopt;
      },
      value);
}

absl::StatusOr<Architecture> FindArchitecture(const GgufFile& file) {
  SETU_ASSIGN_OR_RETURN(const std::string name, file.String("general.architecture"));
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    if (name == architecture.name) return architecture;
    absl::StrAppend(&known, known.empty() ? "" : ", ", architecture.name);
  }
  return file.Invalid(
      absl::StrCat("metadata 'general.architecture' is ", Quoted(name), "; known: ", known));
}

// Reads one file's config. Members are filled in the order in which later ones need them.
class ConfigReader {
 public:
  ConfigReader(const GgufFile& file, const Architecture& architecture)
      : file_(file), architecture_(architecture) {}

  absl::StatusOr<ModelConfig> Read() {
    config_.architecture = architecture_.name;
    config_.rope_kind = architecture_.rope_kind;
    config_.qkv_bias = architecture_.qkv_bias;
    config_.qk_norm = architecture_.qk_norm;
    config_.tied_embeddings = !file_.HasTensor("output.weight");
    SETU_RETURN_IF_ERROR(RefuseUnknownParts());
    SETU_RETURN_IF_ERROR(ReadName());
    SETU_RETURN_IF_ERROR(ReadSizes());
    SETU_RETURN_IF_ERROR(ReadVocabulary());
    SETU_RETURN_IF_ERROR(ReadRope());
    SETU_RETURN_IF_ERROR(ReadFrequencyDivisors());
    config_.quantization = MainType(file_, FloatWeights::kAsInFile);
    return std::move(config_);
  }

 private:
  std::string Key(const std::string& name) const {
    return absl::StrCat(architecture_.name, ".", name);
  }

  absl::Status Wrong(const std::string& key, const std::string& problem) const {
    return file_.Invalid(absl::StrCat("metadata ", Quoted(key), " ", problem));
  }

  template <typename T>
  absl::StatusOr<T> InRange(const std::string& key, T value, Range<T> range) const {
    if (value >= range.low && value <= range.high) return value;  // NaN is in no range
    return Wrong(key, absl::StrCat("is ", value, ", not ", range.low, " to ", range.high));
  }

  absl::StatusOr<int32_t> Int(const std::string& name, Range<int32_t> range) const {
    SETU_ASSIGN_OR_RETURN(const uint32_t value, file_.Uint32(Key(name)));
    SETU_ASSIGN_OR_RETURN(const int64_t checked,
                          InRange<int64_t>(Key(name), value, {range.low, range.high}));
    return static_cast<int32_t>(checked);
  }
  absl::StatusOr<int32_t> IntOr(const std::string& name, Range<int32_t> range,
                                int32_t fallback) const {
    return file_.Has(Key(name)) ? Int(name, range) : fallback;
  }
  absl::StatusOr<float> Float(const std::string& name, Range<float> range) const {
    SETU_ASSIGN_OR_RETURN(const float value, file_.Float(Key(name)));
    return InRange(Key(name), value, range);
  }
  absl::StatusOr<float> FloatOr(const std::string& name, Range<float> range, float fallback) const {
    return file_.Has(Key(name)) ? Float(name, range) : fallback;
  }

  absl::Status RefuseUnknownParts() const {
    for (const auto& [name, neutral] : kNeutral) {
      const auto found = file_.metadata().find(Key(name));
      if (found != file_.metadata().end() && Number(found->second) != neutral) {
        return Wrong(found->first, "asks for something that is not supported");
      }
    }
    const auto split = file_.metadata().find("split.count");
    if (split != file_.metadata().end() && Number(split->second).value_or(2) > 1) {
      return Wrong(split->first, "says that this is one part of a model; merge the parts first");
    }
    return absl::OkStatus();
  }

  absl::Status ReadName() {
    config_.name = architecture_.name;
    if (!file_.Has("general.name")) return absl::OkStatus();
    SETU_ASSIGN_OR_RETURN(config_.name, file_.String("general.name"));
    const std::string& name = config_.name;
    if (name.empty() || name.size() > kMaxNameBytes || ValidUtf8Prefix(name) != name.size()) {
      return Wrong("general.name", absl::StrCat("is not 1 to ", kMaxNameBytes, " bytes of UTF-8"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadSizes() {
    ModelConfig& c = config_;
    SETU_ASSIGN_OR_RETURN(c.layers, Int("block_count", {1, kMaxLayers}));
    SETU_ASSIGN_OR_RETURN(c.context_length, Int("context_length", {1, kMaxContext}));
    SETU_ASSIGN_OR_RETURN(c.hidden, Int("embedding_length", {1, kMaxWidth}));
    SETU_ASSIGN_OR_RETURN(c.ffn_hidden, Int("feed_forward_length", {1, kMaxWidth}));
    SETU_ASSIGN_OR_RETURN(c.heads, Int("attention.head_count", {1, kMaxHeads}));
    SETU_ASSIGN_OR_RETURN(c.kv_heads, IntOr("attention.head_count_kv", {1, c.heads}, c.heads));
    if (c.heads % c.kv_heads != 0) {
      return Wrong(Key("attention.head_count_kv"),
                   absl::StrCat("is ", c.kv_heads, ", which does not divide the ", c.heads,
                                " of attention.head_count"));
    }
    SETU_ASSIGN_OR_RETURN(c.norm_eps, Float("attention.layer_norm_rms_epsilon", {1e-12f, 0.1f}));
    return ReadHeadDim();
  }

  absl::Status ReadHeadDim() {
    ModelConfig& c = config_;
    const std::string length = "attention.key_length";
    if (!file_.Has(Key(length)) && c.hidden % c.heads != 0) {
      return Wrong(Key("embedding_length"),
                   absl::StrCat("is ", c.hidden, ", not a multiple of the ", c.heads,
                                " of attention.head_count, and there is no ", length));
    }
    SETU_ASSIGN_OR_RETURN(c.head_dim, IntOr(length, {2, kMaxHeadDim}, c.hidden / c.heads));
    if (c.head_dim % 2 != 0 || c.head_dim > kMaxHeadDim) {
      return Wrong(Key(length), absl::StrCat("(or embedding_length / attention.head_count) is ",
                                             c.head_dim, ", not even and at most ", kMaxHeadDim));
    }
    return IntOr("attention.value_length", {c.head_dim, c.head_dim}, c.head_dim).status();
  }

  absl::Status ReadVocabulary() {
    SETU_ASSIGN_OR_RETURN(const GgufTensor embedding, file_.Tensor("token_embd.weight"));
    const int64_t rows = embedding.rows();
    if (rows > kMaxVocabulary) {
      return file_.Invalid(absl::StrCat("tensor 'token_embd.weight' has ", rows,
                                        " rows, more than ", kMaxVocabulary));
    }
    config_.vocabulary = static_cast<int32_t>(rows);
    SETU_RETURN_IF_ERROR(IntOr("vocab_size", {config_.vocabulary, config_.vocabulary}, 0).status());
    const char* tokens_key = "tokenizer.ggml.tokens";
    if (!file_.Has(tokens_key)) return absl::OkStatus();
    SETU_ASSIGN_OR_RETURN(const GgufFile::Strings* tokens, file_.StringArray(tokens_key));
    if (static_cast<int64_t>(tokens->size()) == rows) return absl::OkStatus();
    return Wrong(tokens_key, absl::StrCat("has ", tokens->size(), " tokens, but token_embd.weight ",
                                          rows, " rows"));
  }

  absl::Status ReadRope() {
    ModelConfig& c = config_;
    SETU_ASSIGN_OR_RETURN(c.rope_base, FloatOr("rope.freq_base", {2.0f, 1e12f}, 10000.0f));
    SETU_ASSIGN_OR_RETURN(c.rotary_dim, IntOr("rope.dimension_count", {2, c.head_dim}, c.head_dim));
    if (c.rotary_dim % 2 != 0) {
      return Wrong(Key("rope.dimension_count"), absl::StrCat("is ", c.rotary_dim, ", not even"));
    }
    const std::string type_key = Key("rope.scaling.type");
    if (!file_.Has(type_key)) return absl::OkStatus();
    SETU_ASSIGN_OR_RETURN(const std::string type, file_.String(type_key));
    if (type == "none") return absl::OkStatus();
    if (type != "linear" && type != "yarn") {
      return Wrong(type_key, absl::StrCat("is ", Quoted(type), "; known: none, linear, yarn"));
    }
    SETU_ASSIGN_OR_RETURN(c.rope_scaling.factor, Float("rope.scaling.factor", {1.0f, 65536.0f}));
    c.rope_scaling.kind = RopeScaling::Kind::kLinear;
    return type == "yarn" ? ReadYarn() : absl::OkStatus();
  }

  absl::Status ReadYarn() {
    RopeScaling& s = config_.rope_scaling;
    s.kind = RopeScaling::Kind::kYarn;
    SETU_ASSIGN_OR_RETURN(s.original_context,
                          Int("rope.scaling.original_context_length", {1, kMaxContext}));
    SETU_ASSIGN_OR_RETURN(s.ext_factor,
                          FloatOr("rope.scaling.yarn_ext_factor", {0.0f, 1.0f}, s.ext_factor));
    SETU_ASSIGN_OR_RETURN(s.attn_factor,
                          FloatOr("rope.scaling.attn_factor", {0.01f, 100.0f}, s.attn_factor));
    SETU_ASSIGN_OR_RETURN(s.attn_factor,
                          FloatOr("rope.scaling.yarn_attn_factor", {0.01f, 100.0f}, s.attn_factor));
    SETU_ASSIGN_OR_RETURN(s.beta_fast,
                          FloatOr("rope.scaling.yarn_beta_fast", {0.01f, 1e4f}, s.beta_fast));
    SETU_ASSIGN_OR_RETURN(s.beta_slow,
                          FloatOr("rope.scaling.yarn_beta_slow", {0.01f, 1e4f}, s.beta_slow));
    if (s.beta_slow < s.beta_fast) return absl::OkStatus();
    return Wrong(
        Key("rope.scaling.yarn_beta_slow"),
        absl::StrCat("is ", s.beta_slow, ", not below the ", s.beta_fast, " of yarn_beta_fast"));
  }

  // Files of Llama 3.1 and later carry their scaling worked out, one divisor per pair.
  absl::Status ReadFrequencyDivisors() {
    const char* name = "rope_freqs.weight";
    if (!file_.HasTensor(name)) return absl::OkStatus();
    SETU_ASSIGN_OR_RETURN(const GgufTensor tensor, file_.Tensor(name));
    const int64_t pairs = config_.rotary_dim / 2;
    if (tensor.type != kernels::WeightType::kF32 || tensor.shape != std::vector<int64_t>{pairs}) {
      return file_.Invalid(
          absl::StrCat("tensor '", name, "' is not ", pairs, " values of F32, one per pair"));
    }
    RopeScaling& scaling = config_.rope_scaling;
    if (scaling.kind != RopeScaling::Kind::kNone) {
      return file_.Invalid(absl::StrCat("tensor '", name, "' and metadata '",
                                        Key("rope.scaling.type"), "' ask for two scalings"));
    }
    scaling.kind = RopeScaling::Kind::kLlama3;
    scaling.frequency_divisors.resize(static_cast<size_t>(pairs));
    std::memcpy(scaling.frequency_divisors.data(), tensor.data, static_cast<size_t>(tensor.bytes));
    for (float divisor : scaling.frequency_divisors) {
      if (!(divisor > 0) || !std::isfinite(divisor)) {
        return file_.Invalid(
            absl::StrCat("tensor '", name, "' holds ", divisor, "; divisors are above 0"));
      }
    }
    return absl::OkStatus();
  }

  const GgufFile& file_;
  const Architecture& architecture_;
  ModelConfig config_;
};

}  // namespace

absl::StatusOr<ModelConfig> ReadModelConfig(const GgufFile& file) {
  SETU_ASSIGN_OR_RETURN(const Architecture architecture, FindArchitecture(file));
  return ConfigReader(file, architecture).Read();
}

}  // namespace setu::model
