// SPDX-License-Identifier: Apache-2.0
// What a worker costs: the weights as packed, the pool, and a little; while loading, no more than
// one tensor on top; and no processor time while nobody asks.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/engine/model_runner.h"
#include "common/model/gguf.h"
#include "tests/support/process_cluster.h"
#include "tests/support/real_model.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu {
namespace {

using engine::ModelRunner;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kKvMemory = 64 * kMiB;
constexpr int64_t kRest = 150 * kMiB;  // code, activations, tables, connections

struct Loaded {
  int64_t weights = 0, pool = 0;      // as the runner says
  int64_t resident = 0, highest = 0;  // VmRSS and VmHWM
};

// Of a process that does nothing but load the model; all 0 where it fails.
Loaded LoadInAnotherProcess(const std::string& path, model::FloatWeights floats) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const auto runner = ModelRunner::Load(
        {.model_path = path, .float_weights = floats, .kv_memory_bytes = kKvMemory}, nullptr);
    if (!runner.ok()) _exit(1);
    const kv::KvStorage& storage = (*runner)->storage();
    const Loaded loaded = {
        .weights = static_cast<int64_t>((*runner)->weight_bytes()),
        .pool = static_cast<int64_t>(storage.layout().block_bytes()) * storage.blocks(),
        .resident = 1024 * test::MemoryKilobytes(getpid(), "VmRSS"),
        .highest = 1024 * test::MemoryKilobytes(getpid(), "VmHWM")};
    _exit(write(ends[1], &loaded, sizeof loaded) == sizeof loaded ? 0 : 1);
  }
  close(ends[1]);
  Loaded loaded;
  if (read(ends[0], &loaded, sizeof loaded) != sizeof loaded) loaded = {};
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return loaded;
}

class MemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto file = model::GgufFile::Open(path_);
    ASSERT_TRUE(file.ok()) << file.status() << "; tests/run.sh fetches the model";
    file_ = (*file)->file_bytes();
    for (const model::GgufTensor& tensor : (*file)->tensors()) {
      largest_ = std::max(largest_, tensor.bytes);
    }
    loaded_ = LoadInAnotherProcess(path_, model::FloatWeights::kAsInFile);
    ASSERT_GT(loaded_.weights, 0);
  }

  void ExpectBounded(int64_t resident, int64_t highest) const {
    EXPECT_GE(resident, loaded_.weights);
    EXPECT_LE(resident, loaded_.weights + loaded_.pool + kRest);
    EXPECT_LE(highest, resident + largest_);
  }

  const std::string path_ = test::RealModelPath();
  int64_t file_ = 0, largest_ = 0;  // bytes of the file and of its largest tensor
  Loaded loaded_;
};

TEST_F(MemoryTest, ALoadedModelIsItsPackedWeightsAndItsPool) {
  EXPECT_LE(loaded_.weights, file_ * 115 / 100);
  EXPECT_LE(loaded_.pool, kKvMemory);
  ExpectBounded(loaded_.resident, loaded_.highest);
}

// Made smaller at load, floats are there once: as they become.
TEST(MemoryOfFloats, IsThatOfWhatTheyBecome) {
  constexpr int64_t kSlack = 8 * kMiB;                               // whole pages of 2 MiB
  constexpr int64_t kLargest = int64_t{512} * 2048 * sizeof(float);  // tensor
  const test::TempDir dir;
  const std::string path = test::WriteTinyModel(dir, {.weights = kernels::WeightType::kF32,
                                                      .layers = 8,
                                                      .hidden = 512,
                                                      .ffn_hidden = 2048,
                                                      .heads = 8,
                                                      .kv_heads = 4,
                                                      .head_dim = 64});
  const Loaded kept = LoadInAnotherProcess(path, model::FloatWeights::kAsInFile);
  ASSERT_GT(kept.weights, 100 * kMiB);
  for (const auto& [floats, bits] :
       {std::pair(model::FloatWeights::kInt8, 8.5), std::pair(model::FloatWeights::kInt4, 4.5)}) {
    SCOPED_TRACE(bits);
    const Loaded made = LoadInAnotherProcess(path, floats);
    EXPECT_NEAR(made.weights, kept.weights * bits / 32, kMiB);
    EXPECT_NEAR(kept.resident - made.resident, kept.weights - made.weights, kSlack);
    EXPECT_LE(made.highest, made.resident + kLargest + kSlack);
  }
}

// Processor seconds that a process has used.
double CpuSeconds(pid_t pid) {
  clockid_t clock = 0;
  timespec used = {};
  EXPECT_EQ(clock_getcpuclockid(pid, &clock), 0);
  EXPECT_EQ(clock_gettime(clock, &used), 0);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

TEST_F(MemoryTest, WorkersAreBoundedAtReadyAndIdleWithoutRequests) {
  const std::vector<std::string> memory = {"--kv-memory", std::to_string(kKvMemory)};
  test::ProcessCluster cluster({.model = path_, .prefill_flags = memory, .decode_flags = memory});
  ASSERT_TRUE(cluster.WaitReady());
  for (const char* worker : {"prefill-0", "decode-0"}) {
    SCOPED_TRACE(worker);
    const pid_t pid = cluster.pid(worker);
    ExpectBounded(1024 * test::MemoryKilobytes(pid, "VmRSS"),
                  1024 * test::MemoryKilobytes(pid, "VmHWM"));
  }

  // Time that a process uses, not time that passes. What it does once after its start and what a
  // neighbour's use of caches and of the host costs only add to it, so the least of some stretches
  // is its own; each is longer than whatever an idle process does at intervals.
  const std::vector<std::string> names = {"router", "prefill-0", "decode-0"};
  constexpr std::chrono::seconds kStretch(2);
  std::map<std::string, double> least;
  for (int stretch = 0; stretch < 4; ++stretch) {
    std::map<std::string, double> before;
    for (const std::string& name : names) before[name] = CpuSeconds(cluster.pid(name));
    std::this_thread::sleep_for(kStretch);
    for (const std::string& name : names) {
      const double share =
          (CpuSeconds(cluster.pid(name)) - before[name]) / static_cast<double>(kStretch.count());
      least[name] = stretch == 0 ? share : std::min(least[name], share);
    }
  }
  for (const auto& [name, share] : least) {
    EXPECT_LT(share, 0.005) << name << " uses that share of a core";
  }
}

}  // namespace
}  // namespace setu
