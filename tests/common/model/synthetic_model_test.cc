// SPDX-License-Identifier: Apache-2.0
#include "common/model/synthetic_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/model/model_config.h"
#include "tests/support/temp_dir.h"

namespace setu::model {
namespace {

using kernels::WeightType;
using ::testing::HasSubstr;

std::vector<std::byte> Row(const SyntheticModel& model, size_t tensor, int64_t row) {
  std::vector<float> values(model.Cols(tensor));
  std::vector<std::byte> out(model.RowBytes(tensor));
  model.WriteRow(tensor, row, values, out.data());
  return out;
}

std::map<std::string, WeightType> Types(const SyntheticModelOptions& options) {
  std::map<std::string, WeightType> types;
  const SyntheticModel model(options);
  for (const auto& tensor : model.layout().tensors) {
    types[tensor.name] = static_cast<WeightType>(tensor.type);
  }
  return types;
}

TEST(SyntheticModel, HasTheShapeAskedFor) {
  const SyntheticModel model({.architecture = "qwen3",
                              .weights = {WeightType::kQ4_K, WeightType::kQ6_K},
                              .tied = false,
                              .layers = 3,
                              .hidden = 256,
                              .ffn_hidden = 512,
                              .heads = 4,
                              .kv_heads = 2,
                              .head_dim = 128,
                              .context = 1024,
                              .vocabulary = 300});
  std::string file = model.layout().Header();
  file.resize(file.size() + model.layout().Offsets().back() +
              model.layout().tensors.back().bytes());
  test::TempDir dir;
  const auto gguf = GgufFile::Open(dir.Write("m.gguf", file));
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  const auto config = ReadModelConfig(**gguf);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->layers, 3);
  EXPECT_EQ(config->head_dim, 128);
  EXPECT_EQ(config->vocabulary, 300);
  EXPECT_EQ((*gguf)->Tensor("blk.2.attn_q.weight")->shape, (std::vector<int64_t>{256, 512}));
}

TEST(SyntheticModel, SameSeedSameValuesInAnyOrder) {
  const SyntheticModel one({}), same({}), other({.seed = 3});
  const std::vector<std::byte> row = Row(one, 0, 7);
  Row(same, 4, 1);
  EXPECT_EQ(Row(same, 0, 7), row);
  EXPECT_NE(Row(other, 0, 7), row);
  EXPECT_NE(Row(one, 0, 8), row);
}

TEST(SyntheticModel, MixesKeepMoreBitsWhereLlamaQuantizeDoes) {
  const auto types =
      Types({.weights = *ParseWeightMix("q4_k_m"), .layers = 16, .hidden = 256, .ffn_hidden = 256});
  EXPECT_EQ(types.at("token_embd.weight"), WeightType::kQ6_K);
  EXPECT_EQ(types.at("blk.3.ffn_up.weight"), WeightType::kQ4_K);
  for (const int layer : {0, 1, 4, 7, 10, 13, 14, 15}) {
    EXPECT_EQ(types.at("blk." + std::to_string(layer) + ".ffn_down.weight"), WeightType::kQ6_K);
    EXPECT_EQ(types.at("blk." + std::to_string(layer) + ".attn_v.weight"), WeightType::kQ6_K);
  }
  for (const int layer : {2, 3, 5, 12}) {
    EXPECT_EQ(types.at("blk." + std::to_string(layer) + ".ffn_down.weight"), WeightType::kQ4_K);
  }
}

TEST(SyntheticModel, WeightTypesAreNamedAsInAFile) {
  EXPECT_EQ(ParseWeightMix("bf16")->most, WeightType::kBF16);
  EXPECT_EQ(ParseWeightMix("q5_k")->important, std::nullopt);
  EXPECT_THAT(std::string(ParseWeightMix("q3_k").status().message()),
              HasSubstr("'q3_k' is not one of f32, f16, bf16, q4_0"));
}

}  // namespace
}  // namespace setu::model
