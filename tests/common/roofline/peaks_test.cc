// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/peaks.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "common/engine/model_runner.h"
#include "tests/support/tiny_model.h"

namespace setu::roofline {
namespace {

TEST(Peaks, AreMeasuredOnTheModelsOwnWeights) {
  const test::TempDir dir;
  const auto runner = engine::ModelRunner::Load(
      {.model_path = test::WriteTinyModel(dir, {.weights = kernels::WeightType::kQ8_0}),
       .cpu = {.threads = 1},
       .kv_memory_bytes = 1 << 20},
      nullptr);
  ASSERT_TRUE(runner.ok()) << runner.status();
  const Peaks peaks = MeasurePeaks((*runner)->ops(), (*runner)->weights());
  EXPECT_GT(peaks.bytes_per_second, 0);
  EXPECT_GT(peaks.operations_per_second, 0);
  // All but norms and biases, which no product reads.
  EXPECT_GT(peaks.weight_bytes, 0);
  EXPECT_LT(peaks.weight_bytes, static_cast<int64_t>((*runner)->weights().packed_bytes));
}

TEST(Peaks, CallWeightsBelowTwiceTheCacheResident) {
  EXPECT_TRUE((Peaks{.weight_bytes = 63, .l3_bytes = 32}.cache_resident()));
  EXPECT_FALSE((Peaks{.weight_bytes = 64, .l3_bytes = 32}.cache_resident()));
  EXPECT_FALSE((Peaks{.weight_bytes = 64}.cache_resident())) << "nobody knows the cache";
}

TEST(Peaks, PutTheRidgeWhereBothRoofsMeet) {
  EXPECT_EQ((Peaks{.bytes_per_second = 20, .operations_per_second = 100}.ridge()), 5);
}

TEST(Peaks, RiseToWhatAStepReached) {
  Peaks peaks = {.bytes_per_second = 10, .operations_per_second = 100};
  peaks.Raise({.kv_read_bytes = 40, .attention_operations = 40}, 2.0);
  EXPECT_EQ(peaks.bytes_per_second, 20);
  EXPECT_EQ(peaks.operations_per_second, 100);
}

TEST(LastCacheBytes, IsTheLargestThatTheSystemNames) {
  const test::TempDir root;
  const std::string cache = "/sys/devices/system/cpu/cpu0/cache/index";
  const auto write = [&](int index, const char* size) {
    std::filesystem::create_directories(root.path() + cache + std::to_string(index));
    root.Write((cache + std::to_string(index) + "/size").substr(1), size);
  };
  EXPECT_EQ(LastCacheBytes(root.path()), 0);
  write(0, "48K\n");
  write(2, "1024K\n");
  EXPECT_EQ(LastCacheBytes(root.path()), 1 << 20);
  write(3, "32768K\n");
  EXPECT_EQ(LastCacheBytes(root.path()), 32 << 20);
}

}  // namespace
}  // namespace setu::roofline
