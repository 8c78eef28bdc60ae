// SPDX-License-Identifier: Apache-2.0
// How far int8-g32 and bf16-tile are from f32 on types that the default model does not have:
// K-quants, whose widths must be multiples of 256, and int8 and int4 made of floats at load. Seeded
// models; all paths multiply by the same weights, so that what differs is how activations round.
//
// The bound of trained models is no bound here. Random layers hand small errors on and make them
// larger, and logits of random rows deviate by 9 where those of a trained model do by 3: the same
// rounding that gives the default model a mean KL of 0.001 gives these 0.03 to 0.04. So the bound
// is what llama.cpp has on the same file and ids, as it has the same rounding for Q8_0.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "common/engine/model_runner.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu {
namespace {

using engine::ModelRunner;
using kernels::NumericPath;
using kernels::WeightType;
using model::FloatWeights;

constexpr int32_t kPositions = 256;

std::unique_ptr<ModelRunner> Load(const std::string& path, NumericPath numerics,
                                  FloatWeights floats) {
  auto runner = ModelRunner::Load({.model_path = path,
                                   .cpu = {.path = numerics},
                                   .float_weights = floats,
                                   .kv_memory_bytes = 64 << 20,
                                   .max_rows = kPositions,
                                   .max_logits = kPositions},
                                  nullptr);
  EXPECT_TRUE(runner.ok()) << runner.status();
  return *std::move(runner);
}

// Of the same ids each time: [kPositions, vocabulary].
kernels::ConstMatrix Logits(ModelRunner& runner, kv::BlockLease& lease) {
  static constexpr int32_t kStride = 37;
  std::vector<engine::TokenId> ids;
  for (int32_t i = 0; i < kPositions; ++i) {
    ids.push_back(test::kTinyFirstByte + i * kStride % 256);
  }
  std::vector<engine::StepEntry> entries;
  for (int32_t i = 0; i < kPositions; ++i) {
    entries.push_back({.ids = std::span(ids).subspan(i, 1),
                       .start = i,
                       .blocks = lease.blocks(),
                       .want_logits = true});
  }
  return runner.Step(entries);
}

// Mean Kullback-Leibler divergence in nats.
double Divergence(kernels::ConstMatrix p, kernels::ConstMatrix q) {
  const auto log_sum = [](const float* row, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += std::exp(static_cast<double>(row[i]));
    return std::log(sum);
  };
  double divergence = 0;
  for (int64_t row = 0; row < p.rows; ++row) {
    const double p_sum = log_sum(p.Row(row), p.cols), q_sum = log_sum(q.Row(row), q.cols);
    for (int64_t i = 0; i < p.cols; ++i) {
      const double log_p = p.Row(row)[i] - p_sum;
      divergence += std::exp(log_p) * (log_p - (q.Row(row)[i] - q_sum));
    }
  }
  return divergence / static_cast<double>(p.rows);
}

struct Case {
  const char* name;
  WeightType type;  // of the file
  FloatWeights floats;
};

class SeededCloseness : public ::testing::TestWithParam<Case> {};

// Mean KL of llama.cpp's logits (llama-cpp-python 0.3.36, AVX-512) to our f32, on the file that
//   setu model synth --shape smol --layers 6 --hidden 512 --ffn 1536 --heads 8 --kv-heads 4
//     --head-dim 64 --vocabulary 274 --context 512 --seed 2 --type q8_0
// makes. It rounds activations as coarsely for K-quants that it has 0.063 (Q6_K) to 0.084 (Q4_K)
// there; int8-g32 rounds them alike for all types.
constexpr double kLlamaCppQ8 = 0.0385;

TEST_P(SeededCloseness, ToF32IsThatOfRoundedActivations) {
  const test::TempDir dir;
  const std::string path = test::WriteTinyModel(dir, {.weights = GetParam().type,
                                                      .layers = 6,
                                                      .hidden = 512,
                                                      .ffn_hidden = 1536,
                                                      .heads = 8,
                                                      .kv_heads = 4,
                                                      .head_dim = 64});
  const auto f32 = Load(path, NumericPath::kF32, GetParam().floats);
  auto f32_lease = *f32->pool().Take(kv::BlocksFor(kPositions, 16));
  const kernels::ConstMatrix reference = Logits(*f32, f32_lease);
  const auto divergence = [&](NumericPath numerics) {
    const auto fast = Load(path, numerics, GetParam().floats);
    auto lease = *fast->pool().Take(kv::BlocksFor(kPositions, 16));
    const double kl = Divergence(reference, Logits(*fast, lease));
    RecordProperty("kl_mean of " + fast->fingerprint().numerics, std::to_string(kl));
    std::cout << GetParam().name << ", " << fast->fingerprint().numerics << ": mean KL " << kl
              << "\n";
    return kl;
  };
  const double int8 = divergence(NumericPath::kInt8G32);
  const double bf16 = divergence(NumericPath::kBf16Tile);
  EXPECT_GT(bf16, 0) << "the paths are not the same";
  EXPECT_LT(bf16, int8) << "it keeps more bits of an activation";
  EXPECT_LE(int8, 1.1 * kLlamaCppQ8);
}

INSTANTIATE_TEST_SUITE_P(
    Types, SeededCloseness,
    ::testing::Values(Case{"q4_k", WeightType::kQ4_K, FloatWeights::kAsInFile},
                      Case{"q5_k", WeightType::kQ5_K, FloatWeights::kAsInFile},
                      Case{"q6_k", WeightType::kQ6_K, FloatWeights::kAsInFile},
                      Case{"int8_of_f32", WeightType::kF32, FloatWeights::kInt8},
                      Case{"int4_of_f32", WeightType::kF32, FloatWeights::kInt4}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace setu
