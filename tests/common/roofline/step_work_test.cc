// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/step_work.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "common/engine/model_runner.h"
#include "tests/support/tiny_model.h"

namespace setu::roofline {
namespace {

using kernels::WeightType;

struct Entry {
  int32_t rows = 1;
  int32_t start = 0;
  bool logits = false;
};

// A prompt's last chunk, a middle one, three decoded tokens.
const std::vector<Entry> kMixed = {{17, 32, true}, {16, 0, false}, {1, 0, true}, {1, 99, true}};

std::unique_ptr<engine::ModelRunner> Load(const test::TinyModelOptions& model,
                                          kernels::NumericPath path) {
  const test::TempDir dir;
  auto runner = engine::ModelRunner::Load({.model_path = test::WriteTinyModel(dir, model),
                                           .cpu = {.path = path, .threads = 1},
                                           .kv_memory_bytes = 4 << 20},
                                          nullptr);
  EXPECT_TRUE(runner.ok()) << runner.status();
  return *std::move(runner);
}

ModelShape ShapeOf(engine::ModelRunner& runner) {
  return roofline::ShapeOf(runner.config(), runner.weights(), runner.fingerprint().layout);
}

StepRows RowsOf(const std::vector<Entry>& entries) {
  StepRows rows;
  for (const Entry& entry : entries) rows.Add(entry.rows, entry.start, entry.logits);
  return rows;
}

// The same by walking: every matrix that is loaded, every row, every key and value it sees.
StepWork Walk(engine::ModelRunner& runner, const std::vector<Entry>& entries) {
  const model::ModelConfig& config = runner.config();
  const model::Weights& weights = runner.weights();
  StepWork work;
  double rows = 0, logits = 0;
  for (const Entry& entry : entries) {
    rows += entry.rows;
    logits += entry.logits ? 1 : 0;
  }
  const auto vector_bytes = [](const model::Vector& v) { return 4.0 * v.size(); };
  for (const model::LayerWeights& layer : weights.layers) {
    for (const model::Matrix* m :
         {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.w_gate, &layer.w_up, &layer.w_down}) {
      work.weight_bytes += (*m)->bytes();
      work.product_operations += 2.0 * rows * (*m)->rows() * (*m)->cols();
    }
    for (const model::Vector* v : {&layer.attention_norm, &layer.bq, &layer.bk, &layer.bv,
                                   &layer.q_norm, &layer.k_norm, &layer.ffn_norm}) {
      work.weight_bytes += vector_bytes(*v);
    }
  }
  const auto& output = weights.logits();
  if (logits > 0) {
    work.weight_bytes += output.bytes() + vector_bytes(weights.output_norm);
    work.product_operations += 2.0 * logits * output.rows() * output.cols();
  }
  if (logits == 0 || weights.output != nullptr) {
    work.weight_bytes += rows * (weights.embedding->bytes() / config.vocabulary);
  }
  const double value_bytes = kernels::KvTypeBytes(runner.fingerprint().layout.type);
  for (int32_t layer = 0; layer < config.layers; ++layer) {
    std::set<std::pair<size_t, int32_t>> seen;  // (sequence, position)
    for (size_t sequence = 0; sequence < entries.size(); ++sequence) {
      const Entry& entry = entries[sequence];
      for (int32_t at = entry.start; at < entry.start + entry.rows; ++at) {
        work.kv_write_bytes += 2 * value_bytes * config.kv_heads * config.head_dim;
        for (int32_t key = 0; key <= at; ++key) {
          seen.insert({sequence, key});
          // A score and a share of the output, each head_dim multiplications and additions.
          work.attention_operations += config.heads * 2.0 * (config.head_dim + config.head_dim);
        }
      }
    }
    work.kv_read_bytes += seen.size() * 2 * value_bytes * config.kv_heads * config.head_dim;
  }
  return work;
}

void ExpectEqual(const StepWork& counted, const StepWork& walked) {
  EXPECT_EQ(counted.weight_bytes, walked.weight_bytes);
  EXPECT_EQ(counted.kv_read_bytes, walked.kv_read_bytes);
  EXPECT_EQ(counted.kv_write_bytes, walked.kv_write_bytes);
  EXPECT_EQ(counted.product_operations, walked.product_operations);
  EXPECT_EQ(counted.attention_operations, walked.attention_operations);
}

TEST(StepWork, IsWhatAWalkOverTheModelCounts) {
  for (const char* architecture : {"llama", "qwen2", "qwen3"}) {
    for (const bool tied : {true, false}) {
      for (const WeightType type : {WeightType::kF32, WeightType::kQ4_1, WeightType::kQ8_0}) {
        SCOPED_TRACE(testing::Message() << architecture << tied << kernels::WeightTypeName(type));
        const auto runner =
            Load({.architecture = architecture, .weights = type, .tied = tied, .layers = 3},
                 kernels::NumericPath::kInt8G32);
        ExpectEqual(WorkOf(ShapeOf(*runner), RowsOf(kMixed)), Walk(*runner, kMixed));
      }
    }
  }
}

TEST(StepWork, CountsTheBytesOfTheKvType) {
  for (const auto path : {kernels::NumericPath::kF32, kernels::NumericPath::kInt8G32}) {
    const auto runner = Load({}, path);
    ExpectEqual(WorkOf(ShapeOf(*runner), RowsOf(kMixed)), Walk(*runner, kMixed));
  }
}

TEST(StepWork, LeavesTheOutputMatrixAloneWhereNobodyWantsLogits) {
  for (const bool tied : {true, false}) {
    const std::vector<Entry> chunk = {{16, 0, false}};
    const auto runner = Load({.tied = tied}, kernels::NumericPath::kF32);
    const StepWork work = WorkOf(ShapeOf(*runner), RowsOf(chunk));
    ExpectEqual(work, Walk(*runner, chunk));
    EXPECT_LT(work.weight_bytes, runner->weights().packed_bytes -
                                     runner->weights().logits().bytes() +
                                     runner->weights().embedding->bytes());
  }
}

TEST(StepWork, OfABatchReadsWeightsOnce) {
  const ModelShape shape = {.layers = 2, .formats = {{.layers = 1000}}, .layer_bytes = 500};
  const StepWork one = WorkOf(shape, RowsOf({{1, 7, false}}));
  const StepWork four = WorkOf(shape, RowsOf(std::vector<Entry>(4, {1, 7, false})));
  EXPECT_EQ(four.weight_bytes, one.weight_bytes);
  EXPECT_EQ(four.product_operations, 4 * one.product_operations);
}

TEST(StepWork, OfADecodeBatchIsThatOfItsEntries) {
  EXPECT_EQ(DecodeRows(3, 99), RowsOf(std::vector<Entry>(3, {1, 99, true})));
}

TEST(StepWork, OfChunksAddsUpToThePromptsOperations) {
  const ModelShape shape = {.layers = 3, .attention_width = 64, .formats = {{.layers = 1000}}};
  StepWork chunks;
  for (int32_t start = 0; start < 96; start += 32) {
    chunks += WorkOf(shape, RowsOf({{32, start, false}}));
  }
  EXPECT_EQ(chunks.operations(), WorkOf(shape, RowsOf({{96, 0, false}})).operations());
}

}  // namespace
}  // namespace setu::roofline
