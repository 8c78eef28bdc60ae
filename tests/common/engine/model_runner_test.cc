// SPDX-License-Identifier: Apache-2.0
#include "common/engine/model_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/generate.h"
#include "tests/support/numeric_paths.h"
#include "tests/support/tiny_model.h"

namespace setu::engine {
namespace {

using kernels::KvType;
using kernels::NumericPath;
using test::Cut;
using test::Generate;
using test::Generated;
using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

std::vector<std::vector<TokenId>> Prompts() {
  std::vector<std::vector<TokenId>> prompts;
  for (int length : {1, 15, 16, 17, 130, 3, 64, 33, 2, 5, 31, 7, 9, 2, 20, 65}) {
    std::vector<TokenId>& prompt = prompts.emplace_back();
    for (int i = 0; i < length; ++i) {
      prompt.push_back((i * 31 + length * 7) % test::kTinyVocabulary);
    }
  }
  return prompts;
}

std::unique_ptr<ModelRunner> Load(const RunnerOptions& options) {
  auto runner = ModelRunner::Load(options, nullptr);
  EXPECT_TRUE(runner.ok()) << runner.status();
  return std::move(runner).value_or(nullptr);
}

// Two models in one folder: quantised weights, as served, and all f32.
class Models : public ::testing::Test {
 protected:
  RunnerOptions Options(NumericPath path, const std::string& isa = "auto", int threads = 1) const {
    return {.model_path = q4_1_,
            .cpu = {.path = path, .isa = isa, .threads = threads},
            .kv_memory_bytes = 64 * kMiB};
  }

  test::TempDir dir_;
  std::string q4_1_ =
      test::WriteTinyModel(dir_, {.weights = kernels::WeightType::kQ4_1}, "q4_1.gguf");
};

class SameBits : public Models, public ::testing::WithParamInterface<test::PathAndKv> {
 protected:
  RunnerOptions Options(const std::string& isa = "auto", int threads = 1) const {
    RunnerOptions options = Models::Options(GetParam().path, isa, threads);
    options.cpu.kv_type = GetParam().kv_type;
    return options;
  }
};

// The promise of a numeric path, whole: one reference, and everything that must not change it.
TEST_P(SameBits, WhateverChunkBatchBlocksThreadsAndIsa) {
  const std::vector<Cut> cuts = {{.chunk = 16, .batch = 3},
                                 {.chunk = 64, .batch = 16},
                                 {.batch = 16, .shuffle = 7},
                                 {.chunk = 1, .batch = 5},
                                 {.chunk = 23, .batch = 3, .shuffle = 9},
                                 {}};
  const auto prompts = Prompts();
  const auto reference_runner = Load(Options("portable"));
  const std::vector<Generated> reference = Generate(*reference_runner, prompts, 4, {});
  for (const std::string& isa : kernels::AvailableIsas()) {
    for (int threads : {1, 2}) {
      const auto runner = Load(Options(isa, threads));
      EXPECT_EQ(runner->fingerprint(), reference_runner->fingerprint()) << isa << threads;
      // The portable loops are slow: they take the first cuts only.
      for (const Cut& cut : std::span(cuts).first(isa == "portable" ? 2 : cuts.size())) {
        EXPECT_TRUE(Generate(*runner, prompts, 4, cut) == reference)
            << isa << ", " << threads << " threads, chunk " << cut.chunk << ", batch " << cut.batch
            << ", shuffle " << cut.shuffle;
      }
    }
  }
}

TEST_P(SameBits, WhateverABlockHeldBefore) {
  const auto runner = Load(Options());
  const std::vector<Generated> clean = Generate(*runner, Prompts(), 4, {.batch = 4});
  for (kv::BlockId block = 0; block < runner->pool().total(); ++block) {
    for (int32_t layer = 0; layer < runner->config().layers; ++layer) {
      std::ranges::fill(runner->storage().Piece(block, layer), std::byte{0xff});  // NaNs
    }
  }
  EXPECT_TRUE(Generate(*runner, Prompts(), 4, {.batch = 4}) == clean);
}

TEST_P(SameBits, WhateverTheBlockSize) {
  RunnerOptions options = Options();
  const std::vector<Generated> sixteen = Generate(*Load(options), Prompts(), 4, {});
  options.block_tokens = 32;
  EXPECT_TRUE(Generate(*Load(options), Prompts(), 4, {.chunk = 24}) == sixteen);
}

INSTANTIATE_TEST_SUITE_P(Path, SameBits, ::testing::ValuesIn(test::kPathsAndKv), test::PathAndKvOf);

using Runner = Models;

TEST_F(Runner, RowsOfOneSequenceMayComeAsSeveralEntries) {
  const auto runner = Load(Options(NumericPath::kInt8G32));
  const std::vector<TokenId> prompt = Prompts()[4];
  const auto lease = runner->pool().Take(9);
  std::vector<StepEntry> entries;
  for (int32_t i = 0; i < std::ssize(prompt); ++i) {
    entries.push_back({.ids = std::span(prompt).subspan(i, 1),
                       .start = i,
                       .blocks = lease->blocks(),
                       .want_logits = i + 1 == std::ssize(prompt)});
  }
  const kernels::ConstMatrix logits = runner->Step(entries);
  const std::vector<float> last(logits.data, logits.data + logits.cols);
  const StepEntry whole = {.ids = prompt, .blocks = lease->blocks(), .want_logits = true};
  const kernels::ConstMatrix again = runner->Step({&whole, 1});
  EXPECT_TRUE(std::equal(last.begin(), last.end(), again.data));
}

TEST_F(Runner, ALoadLeavesThePoolFree) {
  const auto runner = Load(Options(NumericPath::kInt8G32));
  EXPECT_EQ(runner->pool().held(), 0);
  EXPECT_GT(runner->pool().total(), 0);
}

TEST_F(Runner, AStepWithoutWantedLogitsGivesNone) {
  const auto runner = Load(Options(NumericPath::kInt8G32));
  const auto lease = runner->pool().Take(1);
  const std::vector<TokenId> ids = {5, 6, 7};
  const StepEntry entry = {.ids = ids, .blocks = lease->blocks()};
  std::vector<int32_t> layers;
  EXPECT_EQ(runner->Step({&entry, 1}, [&](int32_t layer) { layers.push_back(layer); }).rows, 0);
  EXPECT_THAT(layers, testing::ElementsAre(0, 1));
}

TEST_F(Runner, FingerprintsTellModelsPathsAndTokenizersApart) {
  const RunnerFingerprint base = Load(Options(NumericPath::kInt8G32))->fingerprint();
  const RunnerFingerprint f32 = Load(Options(NumericPath::kF32))->fingerprint();
  EXPECT_EQ(base.numerics.rfind("int8-g32/", 0), 0u) << base.numerics;
  EXPECT_EQ(f32.numerics.rfind("f32/", 0), 0u) << f32.numerics;
  EXPECT_EQ(f32.model, base.model);
  EXPECT_NE(f32.logits_digest, base.logits_digest);

  RunnerOptions other_kv = Options(NumericPath::kInt8G32);
  other_kv.cpu.kv_type = KvType::kBF16;
  const RunnerFingerprint bf16 = Load(other_kv)->fingerprint();
  EXPECT_EQ(bf16.numerics, "int8-g32/kv-bf16/r1");
  EXPECT_EQ(bf16.layout.type, KvType::kBF16);
  EXPECT_NE(bf16.logits_digest, base.logits_digest);

  RunnerOptions floats = Options(NumericPath::kInt8G32);
  floats.model_path = test::WriteTinyModel(dir_, {}, "f32.gguf");
  const auto as_in_file = Load(floats);
  floats.float_weights = model::FloatWeights::kInt4;
  const auto int4 = Load(floats);
  EXPECT_NE(int4->fingerprint().model, as_in_file->fingerprint().model);
  EXPECT_NE(int4->fingerprint().logits_digest, as_in_file->fingerprint().logits_digest);
  EXPECT_LT(int4->weight_bytes(), as_in_file->weight_bytes() / 3);
  EXPECT_EQ(int4->config().quantization, "Q4_0");

  RunnerOptions options = Options(NumericPath::kInt8G32);
  options.model_path =
      test::WriteTinyModel(dir_, {.seed = 77, .weights = kernels::WeightType::kQ4_1}, "other.gguf");
  const RunnerFingerprint other = Load(options)->fingerprint();
  EXPECT_NE(other.model, base.model);
  EXPECT_NE(other.logits_digest, base.logits_digest);
  EXPECT_EQ(other.tokenizer, base.tokenizer);

  model::GgufWriter writer = test::TinyModel({.weights = kernels::WeightType::kQ4_1});
  writer.Set("tokenizer.ggml.pre", "gpt-2");
  options.model_path = dir_.Write("tokenizer.gguf", writer.Bytes());
  const RunnerFingerprint retold = Load(options)->fingerprint();
  EXPECT_NE(retold.tokenizer, base.tokenizer);
  EXPECT_EQ(retold.logits_digest, base.logits_digest);
}

TEST_F(Runner, PackedWeightsOutOfTheCacheAreTheSameModel) {
  for (const NumericPath path : {NumericPath::kInt8G32, NumericPath::kBf16Tile}) {
    RunnerOptions options = Options(path);
    options.model_path = test::WriteTinyModel(dir_, {.weights = kernels::WeightType::kF16});
    options.float_weights = model::FloatWeights::kInt8;
    const auto plain = Load(options);
    EXPECT_FALSE(plain->cache_use().has_value());
    options.cache_packed = true;
    const auto packed = Load(options), read = Load(options);
    EXPECT_FALSE(packed->cache_use()->read.ok());
    EXPECT_TRUE(read->cache_use()->read.ok()) << read->cache_use()->read;
    EXPECT_EQ(packed->fingerprint(), plain->fingerprint());
    EXPECT_EQ(read->fingerprint(), plain->fingerprint());
    EXPECT_EQ(read->weight_bytes(), plain->weight_bytes());
  }
}

// A prefill worker with small chunks fits every decode worker.
TEST_F(Runner, FingerprintsAreTheSameHoweverFewRowsAStepHolds) {
  RunnerOptions options = Options(NumericPath::kInt8G32);
  const RunnerFingerprint base = Load(options)->fingerprint();
  for (const int32_t rows : {1, 16, 31, 33, 70}) {
    options.max_rows = rows;
    options.max_logits = 1;
    EXPECT_EQ(Load(options)->fingerprint(), base) << rows << " rows";
  }
}

TEST_F(Runner, ThePoolFollowsTheMemoryButNotBeyondUse) {
  RunnerOptions options = Options(NumericPath::kInt8G32);
  // 2 layers of K and V, 2 heads, 16 tokens of 16 halves.
  const int64_t block_bytes = 2 * 2 * 2 * 16 * 16 * 2;
  options.kv_memory_bytes = 10 * block_bytes + 1;
  const auto small = Load(options);
  EXPECT_EQ(small->pool().total(), 10);
  EXPECT_EQ(small->max_sequence_tokens(), 160);
  options.kv_memory_bytes = 1024 * kMiB;
  options.max_logits = 3;
  const auto large = Load(options);
  EXPECT_EQ(large->pool().total(), 3 * 512 / 16);
  EXPECT_EQ(large->max_sequence_tokens(), 512);
  options.kv_memory_bytes = 0;
  EXPECT_EQ(Load(options)->pool().total(), 3 * 512 / 16);
}

TEST_F(Runner, TooLittleKvMemoryIsAnErrorWithTheNumbers) {
  RunnerOptions options = Options(NumericPath::kInt8G32);
  options.kv_memory_bytes = 4 * 4096;
  const auto runner = ModelRunner::Load(options, nullptr);
  EXPECT_EQ(runner.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(runner.status().message(),
              testing::AllOf(HasSubstr("--kv-memory is 16KiB; "), HasSubstr("20KiB or more")));
}

TEST_F(Runner, KvMemoryBeyondTheMachineIsRefusedBeforeTheWeightsAreRead) {
  RunnerOptions options = Options(NumericPath::kInt8G32);
  options.kv_memory_bytes = int64_t{1} << 50;
  const auto runner = ModelRunner::Load(options, [](double) { ADD_FAILURE() << "weights"; });
  EXPECT_EQ(runner.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(runner.status().message(),
              testing::AllOf(HasSubstr("--kv-memory is 1073741824MiB; it must be at most "),
                             HasSubstr("the memory limit is "), HasSubstr("the weights take ")));
}

TEST_F(Runner, AMissingFileIsAnErrorThatNamesIt) {
  RunnerOptions options = Options(NumericPath::kInt8G32);
  options.model_path = dir_.File("none.gguf");
  EXPECT_THAT(ModelRunner::Load(options, nullptr).status().message(), HasSubstr("none.gguf"));
}

TEST_F(Runner, ProgressEndsAtOne) {
  double last = 0.0;
  const auto runner = ModelRunner::Load(Options(NumericPath::kInt8G32), [&](double share) {
    EXPECT_GE(share, last);
    last = share;
  });
  EXPECT_EQ(last, 1.0);
}

}  // namespace
}  // namespace setu::engine
