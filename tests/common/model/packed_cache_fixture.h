// SPDX-License-Identifier: Apache-2.0
// A tiny model in a folder of its own, loaded by the cache of its packed weights as starts of
// workers do.
#ifndef SETU_TESTS_COMMON_MODEL_PACKED_CACHE_FIXTURE_H_
#define SETU_TESTS_COMMON_MODEL_PACKED_CACHE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/model/packed_cache.h"
#include "kernels/cpu/cpu_ops.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu::model {

inline std::string ReadWhole(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Packs in either order; on the bf16-tile path of a CPU with tile units it is kTiles.
class Packer {
 public:
  explicit Packer(kernels::PackOrder order) : table_(Table(order)) {}
  kernels::Ops& ops() { return ops_; }

 private:
  static kernels::KernelTable Table(kernels::PackOrder order) {
    kernels::KernelTable table = kernels::PortableKernels();
    table.bf16_order = order;
    return table;
  }

  const kernels::KernelTable table_;
  kernels::CpuOps ops_{kernels::NumericPath::kBf16Tile, kernels::KvType::kBF16, table_, 2};
};

// All that a forward pass reads.
inline std::string BytesOf(const Weights& weights) {
  std::string all;
  const auto add = [&](std::span<const std::byte> bytes) {
    all.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const auto add_vectors = [&](std::initializer_list<const Vector*> vectors) {
    for (const Vector* vector : vectors) add(std::as_bytes(std::span(*vector)));
  };
  add(weights.embedding->data());
  for (const LayerWeights& l : weights.layers) {
    for (const Matrix* m : {&l.wq, &l.wk, &l.wv, &l.wo, &l.w_gate, &l.w_up, &l.w_down}) {
      add((*m)->data());
    }
    add_vectors({&l.attention_norm, &l.ffn_norm, &l.bq, &l.bk, &l.bv, &l.q_norm, &l.k_norm});
  }
  add_vectors({&weights.output_norm});
  add(weights.logits().data());
  return all;
}

inline void ExpectSame(const Weights& a, const Weights& b) {
  EXPECT_TRUE(BytesOf(a) == BytesOf(b));
  EXPECT_EQ(a.digest, b.digest);
  EXPECT_EQ(a.packed_bytes, b.packed_bytes);
}

class PackedCacheTest : public ::testing::Test {
 protected:
  // As any start of a worker: with a file opened anew.
  CachedWeights Load(kernels::PackOrder order = kernels::PackOrder::kLanes,
                     FloatWeights floats = FloatWeights::kInt8) const {
    Packer packer(order);
    const auto file = *GgufFile::Open(model_);
    auto loaded = LoadCachedWeights(*file, *ReadModelConfig(*file), floats, packer.ops(), nullptr);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *std::move(loaded);
  }
  Weights LoadPlainly(kernels::PackOrder order = kernels::PackOrder::kLanes,
                      FloatWeights floats = FloatWeights::kInt8) const {
    Packer packer(order);
    const auto file = *GgufFile::Open(model_);
    return *LoadWeights(*file, *ReadModelConfig(*file), floats, packer.ops(), nullptr);
  }
  // What lies beside the model.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      if (entry.path() != model_) names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }
  void ExpectRepacked(const std::string& why, absl::StatusCode code) {
    const Weights expected = LoadPlainly();
    const CachedWeights repacked = Load();
    EXPECT_EQ(repacked.cache.read.code(), code) << repacked.cache.read;
    EXPECT_THAT(repacked.cache.read.message(), ::testing::HasSubstr(why));
    EXPECT_TRUE(repacked.cache.written.ok()) << repacked.cache.written;
    ExpectSame(repacked.weights, expected);
    const CachedWeights read = Load();
    EXPECT_TRUE(read.cache.read.ok()) << read.cache.read;
    ExpectSame(read.weights, expected);
    EXPECT_THAT(Files(), ::testing::ElementsAre("tiny.gguf.lanes-int8.packed"));
  }
  // Puts other bytes in the place of the cache.
  void WriteCache(std::string_view bytes) const {
    dir_.Write("tiny.gguf.lanes-int8.packed", bytes);
  }

  const test::TempDir dir_;
  const std::string model_ = test::WriteTinyModel(dir_, {.weights = kernels::WeightType::kF16});
  const std::string cache_ = model_ + ".lanes-int8.packed";
};

}  // namespace setu::model

#endif  // SETU_TESTS_COMMON_MODEL_PACKED_CACHE_FIXTURE_H_
