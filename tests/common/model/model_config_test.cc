// SPDX-License-Identifier: Apache-2.0
#include "common/model/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu::model {
namespace {

using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<ModelConfig> Read(const GgufWriter& writer) {
  TempDir dir;
  auto file = GgufFile::Open(dir.Write("m.gguf", writer.Bytes()));
  if (!file.ok()) return file.status();
  return ReadModelConfig(**file);
}

GgufWriter Tiny(const std::string& architecture = "llama") {
  return test::TinyModel({.architecture = architecture});
}

TEST(ModelConfig, ReadsALlama) {
  const auto config = Read(Tiny());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name, "Tiny llama 2");
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->quantization, "F32");
  EXPECT_EQ(config->context_length, 512);
  EXPECT_EQ(config->layers, 2);
  EXPECT_EQ(config->hidden, 64);
  EXPECT_EQ(config->ffn_hidden, 128);
  EXPECT_EQ(config->heads, 4);
  EXPECT_EQ(config->kv_heads, 2);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_EQ(config->rotary_dim, 16);
  EXPECT_EQ(config->vocabulary, test::kTinyVocabulary);
  EXPECT_EQ(config->rope_base, 10000.0f);
  EXPECT_EQ(config->rope_kind, kernels::RopeKind::kInterleaved);
  EXPECT_EQ(config->rope_scaling.kind, RopeScaling::Kind::kNone);
  EXPECT_TRUE(config->tied_embeddings);
  EXPECT_FALSE(config->qkv_bias);
  EXPECT_FALSE(config->qk_norm);
}

TEST(ModelConfig, QwenDiffersByItsParts) {
  const auto two = Read(Tiny("qwen2"));
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->rope_kind, kernels::RopeKind::kHalves);
  EXPECT_TRUE(two->qkv_bias);
  EXPECT_FALSE(two->qk_norm);

  const auto three = Read(test::TinyModel({.architecture = "qwen3", .head_dim = 32}));
  ASSERT_TRUE(three.ok()) << three.status();
  EXPECT_EQ(three->head_dim, 32);  // not hidden / heads
  EXPECT_FALSE(three->qkv_bias);
  EXPECT_TRUE(three->qk_norm);
}

TEST(ModelConfig, QuantizationIsTheTypeOfMostBytes) {
  EXPECT_EQ(Read(test::TinyModel({.weights = kernels::WeightType::kQ4_1}))->quantization, "Q4_1");
}

TEST(ModelConfig, OutputOfItsOwnUnties) {
  EXPECT_FALSE(Read(test::TinyModel({.tied = false}))->tied_embeddings);
}

TEST(ModelConfig, KeysThatMayBeMissing) {
  GgufWriter writer = Tiny();
  for (const char* key : {"general.name", "llama.attention.head_count_kv", "llama.rope.freq_base",
                          "llama.vocab_size", "tokenizer.ggml.tokens"}) {
    writer.Remove(key);
  }
  const auto config = Read(writer);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name, "llama");
  EXPECT_EQ(config->kv_heads, 4);
  EXPECT_EQ(config->rope_base, 10000.0f);
}

TEST(ModelConfig, LinearAndYarnScaling) {
  GgufWriter writer = Tiny();
  writer.Set("llama.rope.scaling.type", "linear").Set("llama.rope.scaling.factor", 4.0f);
  auto config = Read(writer);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_scaling.kind, RopeScaling::Kind::kLinear);
  EXPECT_EQ(config->rope_scaling.factor, 4.0f);

  writer.Set("llama.rope.scaling.type", "yarn")
      .Set("llama.rope.scaling.original_context_length", uint32_t{128})
      .Set("llama.rope.scaling.yarn_beta_fast", 16.0f);
  config = Read(writer);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_scaling.kind, RopeScaling::Kind::kYarn);
  EXPECT_EQ(config->rope_scaling.original_context, 128);
  EXPECT_EQ(config->rope_scaling.beta_fast, 16.0f);
  EXPECT_EQ(config->rope_scaling.beta_slow, 1.0f);
}

std::string Divisors(std::vector<float> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

TEST(ModelConfig, Llama3ScalingIsATensor) {
  GgufWriter writer = Tiny();
  writer.Add("rope_freqs.weight", kernels::WeightType::kF32, {8},
             Divisors({1, 1, 1, 1, 2, 4, 8, 8}));
  const auto config = Read(writer);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_scaling.kind, RopeScaling::Kind::kLlama3);
  EXPECT_THAT(config->rope_scaling.frequency_divisors, ElementsAre(1, 1, 1, 1, 2, 4, 8, 8));
}

struct Wrong {
  const char* name;
  std::function<void(GgufWriter&)> damage;
  const char* key;      // that the message has to name
  const char* problem;  // and what it says about it
};

std::function<void(GgufWriter&)> With(const char* key, auto value) {
  return [=](GgufWriter& w) { w.Set(key, value); };
}
std::function<void(GgufWriter&)> WithDivisors(std::vector<float> values) {
  return [=](GgufWriter& w) {
    w.Add("rope_freqs.weight", kernels::WeightType::kF32, {values.size()}, Divisors(values));
  };
}

const Wrong kWrong[] = {
    {"architecture", With("general.architecture", "bert"), "'bert'", "known: llama, qwen2, qwen3"},
    {"architecture type", With("general.architecture", 3u), "general.architecture", "string"},
    {"no layers key", [](GgufWriter& w) { w.Remove("llama.block_count"); }, "llama.block_count",
     "is missing"},
    {"no layers", With("llama.block_count", 0u), "llama.block_count", "is 0, not 1 to 1024"},
    {"many layers", With("llama.block_count", 1u << 30), "llama.block_count", "1073741824"},
    {"layers below 0", With("llama.block_count", -2), "llama.block_count", "not an integer"},
    {"layers as float", With("llama.block_count", 2.0f), "llama.block_count", "not an integer"},
    {"long context", With("llama.context_length", (1u << 20) + 1), "llama.context_length",
     "1048577"},
    {"no hidden", With("llama.embedding_length", 0u), "llama.embedding_length", "is 0"},
    {"wide hidden", With("llama.embedding_length", ~0u), "llama.embedding_length", "4294967295"},
    {"no ffn", With("llama.feed_forward_length", 0u), "llama.feed_forward_length", "is 0"},
    {"no heads", With("llama.attention.head_count", 0u), "llama.attention.head_count", "is 0"},
    {"heads do not divide", With("llama.attention.head_count", 6u), "llama.embedding_length",
     "not a multiple of the 6"},
    {"kv heads do not divide", With("llama.attention.head_count_kv", 3u),
     "llama.attention.head_count_kv", "does not divide"},
    {"more kv heads", With("llama.attention.head_count_kv", 8u), "llama.attention.head_count_kv",
     "is 8, not 1 to 4"},
    {"kv heads by layer", With("llama.attention.head_count_kv", std::vector<int32_t>{2, 2}),
     "llama.attention.head_count_kv", "not an integer"},
    {"odd head", With("llama.attention.key_length", 15u), "llama.attention.key_length", "not even"},
    {"wide head", With("llama.attention.key_length", 258u), "llama.attention.key_length", "is 258"},
    {"base 1", With("llama.rope.freq_base", 1.0f), "llama.rope.freq_base", "is 1"},
    {"other value length", With("llama.attention.value_length", 8u), "llama.attention.value_length",
     "is 8"},
    {"eps 0", With("llama.attention.layer_norm_rms_epsilon", 0.0f), "epsilon", "is 0"},
    {"eps NaN", With("llama.attention.layer_norm_rms_epsilon", std::nanf("")), "epsilon", "nan"},
    {"base inf", With("llama.rope.freq_base", INFINITY), "llama.rope.freq_base", "inf"},
    {"base below 0", With("llama.rope.freq_base", -1.0f), "llama.rope.freq_base", "-1"},
    {"odd rotary", With("llama.rope.dimension_count", 7u), "dimension_count", "is 7, not even"},
    {"rotary over the head", With("llama.rope.dimension_count", 18u), "dimension_count", "is 18"},
    {"scaling type", With("llama.rope.scaling.type", "longrope"), "llama.rope.scaling.type",
     "'longrope'"},
    {"linear without factor", With("llama.rope.scaling.type", "linear"),
     "llama.rope.scaling.factor", "is missing"},
    {"factor 0",
     [](GgufWriter& w) {
       w.Set("llama.rope.scaling.type", "linear").Set("llama.rope.scaling.factor", 0.0f);
     },
     "llama.rope.scaling.factor", "is 0"},
    {"yarn without context",
     [](GgufWriter& w) {
       w.Set("llama.rope.scaling.type", "yarn").Set("llama.rope.scaling.factor", 2.0f);
     },
     "original_context_length", "is missing"},
    {"divisors of another length", WithDivisors({1, 1, 1}), "rope_freqs.weight", "8 values"},
    {"divisor 0", WithDivisors({1, 1, 1, 1, 1, 1, 1, 0}), "rope_freqs.weight", "holds 0"},
    {"divisor NaN", WithDivisors({1, 1, 1, 1, 1, 1, 1, std::nanf("")}), "rope_freqs.weight", "nan"},
    {"two scalings",
     [](GgufWriter& w) {
       WithDivisors(std::vector<float>(8, 1))(w);
       w.Set("llama.rope.scaling.type", "linear").Set("llama.rope.scaling.factor", 2.0f);
     },
     "rope_freqs.weight", "two scalings"},
    {"vocabulary key", With("llama.vocab_size", 100u), "llama.vocab_size", "is 100"},
    {"other token count", With("tokenizer.ggml.tokens", std::vector<std::string>{"a"}),
     "tokenizer.ggml.tokens", "has 1 tokens"},
    {"no embedding", [](GgufWriter& w) { w.RemoveTensor("token_embd.weight"); },
     "token_embd.weight", "is missing"},
    {"experts", With("llama.expert_count", 8u), "llama.expert_count", "not supported"},
    {"window", With("llama.attention.sliding_window", 4096u), "sliding_window", "not supported"},
    {"soft cap", With("llama.attn_logit_softcapping", 50.0f), "softcapping", "not supported"},
    {"both ways", With("llama.attention.causal", false), "causal", "not supported"},
    {"one of two parts", With("split.count", uint32_t{2}), "split.count", "merge"},
    {"name is no text", With("general.name", "\xff\xfe"), "general.name", "UTF-8"},
    {"long name",
     With(
         "general.name",
         std::string_view(
             "a very long name that never ends: "
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
             "a")),
     "general.name", "1 to 256 bytes"},
};

TEST(ModelConfig, WrongValuesAreRefusedByKey) {
  for (const Wrong& wrong : kWrong) {
    GgufWriter writer = Tiny();
    wrong.damage(writer);
    const auto config = Read(writer);
    ASSERT_FALSE(config.ok()) << wrong.name;
    EXPECT_THAT(config.status().message(), HasSubstr("load failed: ")) << wrong.name;
    EXPECT_THAT(config.status().message(), HasSubstr(wrong.key)) << wrong.name;
    EXPECT_THAT(config.status().message(), HasSubstr(wrong.problem)) << wrong.name;
  }
}

TEST(ModelConfig, NeutralValuesOfUnknownPartsAreFine) {
  GgufWriter writer = Tiny();
  writer.Set("llama.expert_count", uint32_t{0}).Set("llama.attention.causal", true);
  writer.Set("llama.logit_scale", 1.0f).Set("split.count", uint32_t{1});
  EXPECT_TRUE(Read(writer).ok());
}

}  // namespace
}  // namespace setu::model
