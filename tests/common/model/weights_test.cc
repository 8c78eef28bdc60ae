// SPDX-License-Identifier: Apache-2.0
#include "common/model/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <functional>
#include <new>
#include <random>

#include "common/base/check.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu::model {
namespace {

using kernels::ConstMatrix;
using kernels::SequenceRows;
using kernels::WeightType;
using test::TempDir;
using test::TinyModelOptions;
using ::testing::HasSubstr;

class Copied final : public kernels::PackedMatrix {
 public:
  Copied(const kernels::RawMatrix& raw, WeightType type)
      : type_(type),
        rows_(raw.rows),
        cols_(raw.cols),
        data_(reinterpret_cast<const char*>(raw.data),
              static_cast<size_t>(kernels::RowBytes(raw.type, raw.cols) * raw.rows)) {}
  int64_t rows() const override { return rows_; }
  int64_t cols() const override { return cols_; }
  WeightType type() const override { return type_; }
  std::span<const std::byte> data() const override { return std::as_bytes(std::span(data_)); }
  const std::string& text() const { return data_; }

 private:
  WeightType type_;
  int64_t rows_, cols_;
  std::string data_;
};

// Packs by copying, `memory` bytes at most; computes nothing.
class CopyingOps final : public kernels::Ops {
 public:
  explicit CopyingOps(size_t memory = SIZE_MAX) : memory_(memory) {}
  std::string path_name() const override { return "copy"; }
  std::string isa_name() const override { return "none"; }
  int threads() const override { return 1; }
  kernels::KvType kv_type() const override { return kernels::KvType::kF32; }
  std::unique_ptr<kernels::PackedMatrix> PackAs(const kernels::RawMatrix& raw,
                                                WeightType type) override {
    auto packed = std::make_unique<Copied>(raw, type);
    if (packed->bytes() > memory_) throw std::bad_alloc();
    memory_ -= packed->bytes();
    return packed;
  }
  kernels::PackFormat pack_format() const override { return {"copy", 1}; }
  size_t PackedBytes(WeightType, int64_t, int64_t) const override {
    Never();
    return 0;
  }
  std::unique_ptr<kernels::PackedMatrix> Restore(WeightType, int64_t, int64_t,
                                                 const Fill&) override {
    Never();
    return nullptr;
  }
  void AdoptCaller() override { Never(); }
  void Embed(const kernels::PackedMatrix&, std::span<const int32_t>, kernels::Matrix) override {
    Never();
  }
  void Linear(const kernels::LinearInput&, std::span<const kernels::LinearOutput>) override {
    Never();
  }
  void FeedForward(const kernels::LinearInput&, const kernels::PackedMatrix&,
                   const kernels::PackedMatrix&, const kernels::LinearOutput&) override {
    Never();
  }
  void RopeAndStoreKv(kernels::Matrix, kernels::Matrix, ConstMatrix, std::span<const SequenceRows>,
                      const kernels::HeadNorms&, const kernels::RopeTable&, kernels::RopeKind,
                      const kernels::KvLayer&) override {
    Never();
  }
  void Attention(ConstMatrix, std::span<const SequenceRows>, const kernels::AttentionShape&,
                 const kernels::KvLayer&, kernels::Matrix) override {
    Never();
  }
  uint32_t ProbeReads(std::span<const kernels::PackedMatrix* const>) override {
    Never();
    return 0;
  }
  int64_t ProbeProducts(const kernels::PackedMatrix&, int64_t) override {
    Never();
    return 0;
  }

 private:
  static void Never() { SETU_CHECK(false, "loading weights only packs"); }
  size_t memory_;
};

absl::StatusOr<Weights> Load(const std::string& bytes, CopyingOps ops = CopyingOps(),
                             const Progress& progress = nullptr,
                             FloatWeights floats = FloatWeights::kAsInFile) {
  TempDir dir;
  auto file = GgufFile::Open(dir.Write("m.gguf", bytes));
  if (!file.ok()) return file.status();
  auto config = ReadModelConfig(**file);
  if (!config.ok()) return config.status();
  return LoadWeights(**file, *config, floats, ops, progress);
}

absl::StatusOr<Weights> Load(const GgufWriter& writer) { return Load(writer.Bytes()); }

std::string PackedBytes(const Matrix& matrix) { return static_cast<const Copied&>(*matrix).text(); }
std::string VectorBytes(const Vector& vector) {
  return std::string(reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float));
}

TEST(Weights, EveryTensorLandsInItsField) {
  GgufWriter writer = test::TinyModel({.architecture = "qwen3", .tied = false, .head_dim = 32});
  const auto weights = Load(writer);
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(PackedBytes(weights->embedding), writer.Find("token_embd.weight").data);
  EXPECT_EQ(PackedBytes(weights->output), writer.Find("output.weight").data);
  EXPECT_EQ(&weights->logits(), weights->output.get());
  EXPECT_EQ(VectorBytes(weights->output_norm), writer.Find("output_norm.weight").data);
  ASSERT_EQ(weights->layers.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const LayerWeights& layer = weights->layers[i];
    auto data = [&](const std::string& name) {
      return writer.Find("blk." + std::to_string(i) + "." + name).data;
    };
    EXPECT_EQ(PackedBytes(layer.wq), data("attn_q.weight"));
    EXPECT_EQ(PackedBytes(layer.wk), data("attn_k.weight"));
    EXPECT_EQ(PackedBytes(layer.wv), data("attn_v.weight"));
    EXPECT_EQ(PackedBytes(layer.wo), data("attn_output.weight"));
    EXPECT_EQ(PackedBytes(layer.w_gate), data("ffn_gate.weight"));
    EXPECT_EQ(PackedBytes(layer.w_up), data("ffn_up.weight"));
    EXPECT_EQ(PackedBytes(layer.w_down), data("ffn_down.weight"));
    EXPECT_EQ(VectorBytes(layer.attention_norm), data("attn_norm.weight"));
    EXPECT_EQ(VectorBytes(layer.ffn_norm), data("ffn_norm.weight"));
    EXPECT_EQ(VectorBytes(layer.q_norm), data("attn_q_norm.weight"));
    EXPECT_EQ(VectorBytes(layer.k_norm), data("attn_k_norm.weight"));
    EXPECT_TRUE(layer.bq.empty());
    EXPECT_EQ(layer.wq->rows(), 4 * 32);
    EXPECT_EQ(layer.wq->cols(), 64);
    EXPECT_EQ(layer.w_down->rows(), 64);
    EXPECT_EQ(layer.w_down->cols(), 128);
  }
}

TEST(Weights, BiasesOfQwen2) {
  GgufWriter writer = test::TinyModel({.architecture = "qwen2"});
  const auto weights = Load(writer);
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(VectorBytes(weights->layers[1].bq), writer.Find("blk.1.attn_q.bias").data);
  EXPECT_EQ(VectorBytes(weights->layers[1].bk), writer.Find("blk.1.attn_k.bias").data);
  EXPECT_EQ(VectorBytes(weights->layers[1].bv), writer.Find("blk.1.attn_v.bias").data);
}

TEST(Weights, TiedOutputIsTheEmbedding) {
  const auto weights = Load(test::TinyModel({}));
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->output, nullptr);
  EXPECT_EQ(&weights->logits(), weights->embedding.get());
}

TEST(Weights, CountsPackedBytesAndProgress) {
  const GgufWriter writer = test::TinyModel({.weights = WeightType::kQ4_1});
  size_t bytes = 0;
  for (const auto& tensor : writer.tensors) bytes += tensor.data.size();
  std::vector<double> steps;
  const auto weights =
      Load(writer.Bytes(), CopyingOps(), [&](double share) { steps.push_back(share); });
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->packed_bytes, bytes);
  EXPECT_EQ(steps.size(), writer.tensors.size());
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  EXPECT_DOUBLE_EQ(steps.back(), 1.0);
}

// Kilobytes of the mapping of `path` that are resident in this process.
int64_t ResidentKilobytes(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  int64_t total = 0;
  bool ours = false;
  for (std::string line; std::getline(maps, line);) {
    const bool field = std::isupper(static_cast<unsigned char>(line[0]));  // else a new mapping
    if (!field) ours = line.ends_with(path);
    if (ours && line.starts_with("Rss:")) total += std::stoll(line.substr(4));
  }
  return total;
}

TEST(Weights, PagesOfTheFileGoAsTheyArePacked) {
  TempDir dir;
  const std::string path = test::WriteTinyModel(dir, {.hidden = 256, .ffn_hidden = 1024});
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto config = ReadModelConfig(**file);
  ASSERT_TRUE(config.ok()) << config.status();
  constexpr int64_t kLargestTensor = 256 * 1024 * 4 / 1024;
  int64_t most = 0;
  CopyingOps ops;
  const auto weights = LoadWeights(**file, *config, FloatWeights::kAsInFile, ops,
                                   [&](double) { most = std::max(most, ResidentKilobytes(path)); });
  ASSERT_TRUE(weights.ok()) << weights.status();
  ASSERT_GT((*file)->file_bytes() / 1024, 4 * kLargestTensor);
  EXPECT_LE(most, kLargestTensor);
  EXPECT_EQ(ResidentKilobytes(path), 0);
  volatile auto read = static_cast<uint8_t>(*(*file)->tensors()[0].data);
  (void)read;
  EXPECT_GT(ResidentKilobytes(path), 0);  // the measure sees pages
}

struct Wrong {
  const char* name;
  std::function<void(GgufWriter&)> damage;
  const char* error;
};

const Wrong kWrong[] = {
    {"missing", [](GgufWriter& w) { w.RemoveTensor("blk.1.ffn_up.weight"); },
     "'blk.1.ffn_up.weight' is missing"},
    {"left over", [](GgufWriter& w) { w.Add("blk.0.attn_q.bias", WeightType::kF32, {1}, "1234"); },
     "'blk.0.attn_q.bias' belongs to no part"},
    {"layer left over", [](GgufWriter& w) { w.Set("llama.block_count", uint32_t{1}); },
     "'blk.1.attn_norm.weight' belongs to no part"},
    {"layer missing", [](GgufWriter& w) { w.Set("llama.block_count", uint32_t{3}); },
     "'blk.2.attn_norm.weight' is missing"},
    {"transposed",
     [](GgufWriter& w) {
       w.Find("blk.0.ffn_up.weight").shape = {128, 64};
     },
     "has shape [128, 64], not [64, 128]"},
    {"a dimension more",
     [](GgufWriter& w) {
       w.Find("output_norm.weight").shape = {64, 1};
     },
     "has shape [64, 1], not [64]"},
    {"norm of another type",
     [](GgufWriter& w) {
       w.Find("output_norm.weight").type = static_cast<uint32_t>(WeightType::kF16);
     },
     "'output_norm.weight' is F16"},
};

TEST(Weights, WrongTensorsAreRefusedByName) {
  for (const Wrong& wrong : kWrong) {
    GgufWriter writer = test::TinyModel({});
    wrong.damage(writer);
    const auto weights = Load(writer);
    ASSERT_FALSE(weights.ok()) << wrong.name;
    EXPECT_EQ(weights.status().message().find("load failed: "), 0u) << wrong.name;
    EXPECT_THAT(weights.status().message(), HasSubstr(wrong.error)) << wrong.name;
  }
}

TEST(Weights, TooLittleMemoryIsAnErrorThatSaysSo) {
  const auto weights = Load(test::TinyModel({}).Bytes(), CopyingOps(100000));
  EXPECT_EQ(weights.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(weights.status().message(), HasSubstr("no memory to pack tensor 'blk."));
}

uint64_t DigestOf(const GgufWriter& writer) {
  const auto weights = Load(writer);
  EXPECT_TRUE(weights.ok()) << weights.status();
  return weights.ok() ? weights->digest : 0;
}

TEST(Weights, DigestIsOfWhatDecidesTheLogits) {
  const GgufWriter writer = test::TinyModel({});
  const uint64_t digest = DigestOf(writer);

  GgufWriter renamed = writer;
  renamed.Set("general.name", "Another").Set("general.license", "mit");
  EXPECT_EQ(DigestOf(renamed), digest);
  GgufWriter reordered = writer;
  std::swap(reordered.tensors[2], reordered.tensors[5]);
  EXPECT_EQ(DigestOf(reordered), digest);

  EXPECT_NE(DigestOf(test::TinyModel({.seed = 3})), digest);
  EXPECT_NE(DigestOf(test::TinyModel({.weights = WeightType::kQ8_0})), digest);
  GgufWriter turned = writer;
  turned.Set("llama.rope.freq_base", 10001.0f);
  EXPECT_NE(DigestOf(turned), digest);
  for (const char* name : {"token_embd.weight", "blk.1.ffn_norm.weight", "blk.0.attn_v.weight"}) {
    GgufWriter flipped = writer;
    flipped.Find(name).data.back() ^= 1;
    EXPECT_NE(DigestOf(flipped), digest) << name;
  }
}

absl::StatusOr<Weights> LoadAs(FloatWeights floats, const TinyModelOptions& options) {
  return Load(test::TinyModel(options).Bytes(), CopyingOps(), nullptr, floats);
}

WeightType TypeOf(const Matrix& matrix) { return matrix->type(); }

TEST(Weights, FloatMatricesBecomeInt8OrInt4) {
  for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBF16}) {
    const auto kept = LoadAs(FloatWeights::kAsInFile, {.weights = type, .tied = false});
    const auto int8 = LoadAs(FloatWeights::kInt8, {.weights = type, .tied = false});
    const auto int4 = LoadAs(FloatWeights::kInt4, {.weights = type, .tied = false});
    ASSERT_TRUE(kept.ok() && int8.ok() && int4.ok());
    EXPECT_EQ(TypeOf(kept->layers[1].wq), type);
    EXPECT_EQ(TypeOf(int8->layers[1].wq), WeightType::kQ8_0);
    EXPECT_EQ(TypeOf(int8->embedding), WeightType::kQ8_0);
    EXPECT_EQ(TypeOf(int4->layers[1].w_down), WeightType::kQ4_0);
    EXPECT_EQ(TypeOf(int4->embedding), WeightType::kQ8_0);
    EXPECT_EQ(TypeOf(int4->output), WeightType::kQ8_0);
    EXPECT_NE(int8->digest, kept->digest);
    EXPECT_NE(int4->digest, kept->digest);
    EXPECT_NE(int4->digest, int8->digest);
  }
}

TEST(Weights, QuantisedMatricesAndThoseOfOtherWidthsStay) {
  for (const FloatWeights floats : {FloatWeights::kInt8, FloatWeights::kInt4}) {
    const TinyModelOptions quantised = {.weights = WeightType::kQ4_1};
    EXPECT_EQ(TypeOf(LoadAs(floats, quantised)->layers[0].wq), WeightType::kQ4_1);
    EXPECT_EQ(LoadAs(floats, quantised)->digest,
              LoadAs(FloatWeights::kAsInFile, quantised)->digest);
    const auto narrow = LoadAs(floats, {.hidden = 48, .ffn_hidden = 64});
    EXPECT_EQ(TypeOf(narrow->layers[0].wq), WeightType::kF32);      // [.., 48]
    EXPECT_NE(TypeOf(narrow->layers[0].w_down), WeightType::kF32);  // [.., 64]
  }
}

TEST(Weights, PackedBytesAndMainTypeAreOfWhatTheyBecome) {
  TempDir dir;
  const auto file = *GgufFile::Open(test::WriteTinyModel(dir));
  int64_t bytes = 0;
  for (const GgufTensor& tensor : file->tensors()) bytes += tensor.bytes;
  EXPECT_EQ(PackedBytes(*file, FloatWeights::kAsInFile), bytes);
  EXPECT_LT(PackedBytes(*file, FloatWeights::kInt8), bytes / 3);
  EXPECT_LT(PackedBytes(*file, FloatWeights::kInt4), PackedBytes(*file, FloatWeights::kInt8));
  EXPECT_EQ(MainType(*file, FloatWeights::kAsInFile), "F32");
  EXPECT_EQ(MainType(*file, FloatWeights::kInt4), "Q4_0");
}

TEST(Weights, NamesOfFloatWeights) {
  EXPECT_EQ(*ParseFloatWeights("auto"), FloatWeights::kAsInFile);
  EXPECT_EQ(*ParseFloatWeights("int8"), FloatWeights::kInt8);
  EXPECT_EQ(*ParseFloatWeights("int4"), FloatWeights::kInt4);
  for (const char* name : {"auto", "int8", "int4"}) {
    EXPECT_STREQ(FloatWeightsName(*ParseFloatWeights(name)), name);
  }
  EXPECT_THAT(ParseFloatWeights("int2").status().message(), HasSubstr("--weights=int2"));
}

TEST(Weights, DamagedHeadersLoadOrFailCleanly) {
  const GgufWriter writer = test::TinyModel(
      {.layers = 1, .hidden = 8, .ffn_hidden = 8, .heads = 2, .kv_heads = 1, .head_dim = 4});
  const std::string whole = writer.Bytes();
  ASSERT_TRUE(Load(whole).ok());
  std::mt19937_64 random(11);
  int refused = 0;
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds; ++round) {
    std::string damaged = whole;
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      damaged[random() % writer.Header().size()] = static_cast<char>(random());
    }
    refused += !Load(damaged).ok();
  }
  EXPECT_GT(refused, kRounds / 10);
}

}  // namespace
}  // namespace setu::model
