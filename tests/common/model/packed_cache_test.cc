// SPDX-License-Identifier: Apache-2.0
#include "common/model/packed_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "tests/common/model/packed_cache_fixture.h"

namespace setu::model {
namespace {

namespace fs = std::filesystem;

using kernels::PackOrder;
using kernels::WeightType;
using test::TinyModelOptions;

// Does to the file at `path` what changes its time, and gives it the old one back.
void KeepingTime(const std::string& path, const std::function<void()>& change) {
  struct stat before {};
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  change();
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST_F(PackedCacheTest, GivesTheSameWeightsAsPacking) {
  const TinyModelOptions models[] = {
      {.architecture = "qwen3", .weights = WeightType::kF32, .tied = false, .head_dim = 32},
      {.architecture = "qwen2", .weights = WeightType::kF16},
      {.weights = WeightType::kBF16},
      {.weights = WeightType::kQ4_1},
      {.weights = WeightType::kQ8_0},
      {.weights = WeightType::kQ4_K, .hidden = 256, .ffn_hidden = 256, .head_dim = 64},
      {.weights = WeightType::kQ6_K, .hidden = 256, .ffn_hidden = 256, .head_dim = 64}};
  for (const TinyModelOptions& model : models) {
    for (const PackOrder order : {PackOrder::kLanes, PackOrder::kTiles}) {
      for (const FloatWeights floats :
           {FloatWeights::kAsInFile, FloatWeights::kInt8, FloatWeights::kInt4}) {
        if (floats != FloatWeights::kAsInFile && kernels::BlockValues(model.weights) > 1) continue;
        SCOPED_TRACE(absl::StrCat(kernels::WeightTypeName(model.weights), " ",
                                  FloatWeightsName(floats), " ", order == PackOrder::kTiles));
        test::WriteTinyModel(dir_, model);
        const Weights plain = LoadPlainly(order, floats);
        const CachedWeights packed = Load(order, floats);
        EXPECT_FALSE(packed.cache.read.ok());
        EXPECT_TRUE(packed.cache.written.ok()) << packed.cache.written;
        const CachedWeights read = Load(order, floats);
        EXPECT_TRUE(read.cache.read.ok()) << read.cache.read;
        ExpectSame(packed.weights, plain);
        ExpectSame(read.weights, plain);
        EXPECT_EQ(static_cast<int64_t>(fs::file_size(read.cache.path)), read.cache.bytes);
      }
    }
  }
  // One for each order and each way to take floats.
  EXPECT_THAT(Files(),
              ::testing::ElementsAre("tiny.gguf.lanes-auto.packed", "tiny.gguf.lanes-int4.packed",
                                     "tiny.gguf.lanes-int8.packed", "tiny.gguf.tiles-auto.packed",
                                     "tiny.gguf.tiles-int4.packed", "tiny.gguf.tiles-int8.packed"));
}

// Matrices that are no longer in the model's file come out of the cache all the same.
TEST_F(PackedCacheTest, ASecondLoadReadsNoMatrixOfTheModel) {
  const CachedWeights first = Load();
  EXPECT_EQ(first.cache.read.code(), absl::StatusCode::kNotFound);
  const auto file = *GgufFile::Open(model_);
  const std::string whole = ReadWhole(model_);
  std::string changed = whole;
  for (const GgufTensor& tensor : file->tensors()) {
    if (tensor.shape.size() < 2) continue;
    const size_t data = whole.find(
        std::string(reinterpret_cast<const char*>(tensor.data), static_cast<size_t>(tensor.bytes)));
    ASSERT_NE(data, std::string::npos);
    std::fill_n(changed.begin() + static_cast<int64_t>(data), tensor.bytes, '\0');
  }
  KeepingTime(model_, [&] { dir_.Write("tiny.gguf", changed); });
  EXPECT_NE(LoadPlainly().digest, first.weights.digest);
  const CachedWeights second = Load();
  EXPECT_TRUE(second.cache.read.ok()) << second.cache.read;
  ExpectSame(second.weights, first.weights);
}

TEST_F(PackedCacheTest, AnotherModelOfTheSameNameIsPacked) {
  Load();
  test::WriteTinyModel(dir_, {.seed = 3, .weights = WeightType::kF16});
  ExpectRepacked("it says 'model modified at ", absl::StatusCode::kFailedPrecondition);
  test::WriteTinyModel(dir_, {.weights = WeightType::kF16, .ffn_hidden = 256});
  ExpectRepacked("it says 'model of ", absl::StatusCode::kFailedPrecondition);
}

TEST_F(PackedCacheTest, ATouchedModelIsPacked) {
  Load();
  struct stat info {};
  ASSERT_EQ(stat(model_.c_str(), &info), 0);
  timespec times[] = {info.st_atim, info.st_mtim};
  times[1].tv_nsec ^= 1;
  ASSERT_EQ(utimensat(AT_FDCWD, model_.c_str(), times, 0), 0);
  ExpectRepacked("it says 'model modified at ", absl::StatusCode::kFailedPrecondition);
}

TEST_F(PackedCacheTest, AModelWithOtherMetadataIsPackedWhateverItsTime) {
  Load();
  GgufWriter writer = test::TinyModel({.weights = WeightType::kF16});
  writer.Set("llama.rope.freq_base", 10001.0f);
  KeepingTime(model_, [&] { dir_.Write("tiny.gguf", writer.Bytes()); });
  ExpectRepacked("it says 'model header has the digest ", absl::StatusCode::kFailedPrecondition);
}

// As another program would have written it: `from` in its text is `to` of the same length.
TEST_F(PackedCacheTest, OfAnotherProgramItIsPacked) {
  const std::pair<const char*, const char*> others[] = {
      {"Setu packed weights", "Setu kneaded weight"},  // another file altogether
      {"format 1", "format 2"},
      {"pieces of 1048576", "pieces of 2097152"},
      {"lanes, revision 1", "lanes, revision 2"},
      {"packed as lanes", "packed as tiles"},
      {"floats become int8", "floats become int4"},
      {"token_embd.weight F16 as Q8_0", "token_embd.weight F16 as Q4_0"},
      {"blk.0.attn_q.weight", "blk.1.attn_q.weight"},
      {"[64, 64]", "[64, 46]"},
      {" bytes at 0\n", " bytes at 1\n"},
      {"\nend\n", "\nEND\n"}};
  for (const auto& [from, to] : others) {
    SCOPED_TRACE(to);
    Load();
    std::string text = ReadWhole(cache_);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, std::strlen(from), to);
    WriteCache(text);
    ExpectRepacked("it says '", absl::StatusCode::kFailedPrecondition);
  }
}

TEST_F(PackedCacheTest, ATruncatedOneIsPacked) {
  Load();
  const std::string whole = ReadWhole(cache_);
  const size_t text = whole.find("\nend\n") + 5;
  for (const size_t size : {size_t{0}, size_t{1}, text / 2, text - 1}) {
    SCOPED_TRACE(size);
    WriteCache(whole.substr(0, size));
    ExpectRepacked("it says '", absl::StatusCode::kFailedPrecondition);
  }
  for (const size_t size : {text, text + 8, text + 4096, whole.size() / 2, whole.size() - 1}) {
    SCOPED_TRACE(size);
    WriteCache(whole.substr(0, size));
    ExpectRepacked(absl::StrCat("it has ", size, " bytes, not ", whole.size()),
                   absl::StatusCode::kDataLoss);
  }
  WriteCache(whole + "more");
  ExpectRepacked("bytes, not ", absl::StatusCode::kDataLoss);
}

TEST_F(PackedCacheTest, AFlippedBitIsFoundWhereverItIs) {
  const Weights expected = LoadPlainly();
  Load();
  const std::string whole = ReadWhole(cache_);
  const size_t text = whole.find("\nend\n") + 5;
  const size_t numbers = text + 8 * (1 + 15 + 1);  // a digest, 15 matrices, a seal
  const size_t first = (numbers + 4095) / 4096 * 4096;
  const size_t last = whole.find_last_not_of('\0');
  std::vector<size_t> places = {first, first + 4000, (first + last) / 2, last};
  for (size_t at = 0; at < text; at += 211) places.push_back(at);
  for (size_t at = text; at < numbers; at += 7) places.push_back(at);
  for (const size_t at : places) {
    SCOPED_TRACE(at);
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    WriteCache(flipped);
    const CachedWeights repacked = Load();
    EXPECT_FALSE(repacked.cache.read.ok());
    ExpectSame(repacked.weights, expected);
  }
  EXPECT_TRUE(Load().cache.read.ok());
}

// What threads read apart is checked together.
TEST_F(PackedCacheTest, PiecesThatChangedPlacesAreFound) {
  test::WriteTinyModel(dir_, {.weights = WeightType::kF16,
                              .layers = 1,
                              .hidden = 512,
                              .ffn_hidden = 4096,
                              .heads = 8,
                              .kv_heads = 2,
                              .head_dim = 64});
  ExpectSame(Load().weights, LoadPlainly());
  std::string swapped = ReadWhole(cache_);
  // The last matrix has two pieces and a part of one.
  const auto begin = swapped.end() - 4096 * 512 / 32 * 34;
  std::swap_ranges(begin, begin + kernels::Ops::kRestorePiece, begin + kernels::Ops::kRestorePiece);
  WriteCache(swapped);
  ExpectRepacked("'blk.0.ffn_down.weight' is damaged", absl::StatusCode::kDataLoss);
}

TEST_F(PackedCacheTest, ADamagedMatrixIsNamed) {
  Load();
  std::string damaged = ReadWhole(cache_);
  damaged[damaged.find_last_not_of('\0')] ^= 1;
  WriteCache(damaged);
  ExpectRepacked("'blk.1.ffn_down.weight' is damaged", absl::StatusCode::kDataLoss);
}

TEST_F(PackedCacheTest, ProgressOfReadingEndsAtOne) {
  Load();
  Packer packer(PackOrder::kLanes);
  const auto file = *GgufFile::Open(model_);
  std::vector<double> steps;
  const auto loaded =
      LoadCachedWeights(*file, *ReadModelConfig(*file), FloatWeights::kInt8, packer.ops(),
                        [&](double share) { steps.push_back(share); });
  ASSERT_TRUE(loaded.ok() && loaded->cache.read.ok());
  EXPECT_EQ(steps.size(), 15u);
  EXPECT_TRUE(std::ranges::is_sorted(steps));
  EXPECT_DOUBLE_EQ(steps.back(), 1.0);
}

}  // namespace
}  // namespace setu::model
