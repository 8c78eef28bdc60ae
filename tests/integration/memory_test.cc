// SPDX-License-Identifier: Apache-2.0
// What a loaded model costs: the weights as packed, the pool, and a little; while loading, no more
// than one tensor on top.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

#include "common/engine/model_runner.h"
#include "common/model/gguf.h"
#include "tests/support/real_model.h"

namespace setu {
namespace {

using engine::ModelRunner;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kKvMemory = 64 * kMiB;
constexpr int64_t kRest = 150 * kMiB;  // code, activations, tables, connections

// Bytes of a field of /proc/PID/status, such as VmRSS.
int64_t StatusBytes(const std::string& pid, const std::string& field) {
  std::ifstream in("/proc/" + pid + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(field + ":")) return 1024 * std::stoll(line.substr(field.size() + 1));
  }
  return -1;
}

struct Loaded {
  int64_t weights = 0, pool = 0;      // as the runner says
  int64_t resident = 0, highest = 0;  // VmRSS and VmHWM
};

// Of a process that does nothing but load the model; all 0 where it fails.
Loaded LoadInAnotherProcess(const std::string& path) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const auto runner =
        ModelRunner::Load({.model_path = path, .kv_memory_bytes = kKvMemory}, nullptr);
    if (!runner.ok()) _exit(1);
    const kv::KvStorage& storage = (*runner)->storage();
    const Loaded loaded = {
        .weights = static_cast<int64_t>((*runner)->weight_bytes()),
        .pool = static_cast<int64_t>(storage.layout().block_bytes()) * storage.blocks(),
        .resident = StatusBytes("self", "VmRSS"),
        .highest = StatusBytes("self", "VmHWM")};
    _exit(write(ends[1], &loaded, sizeof loaded) == sizeof loaded ? 0 : 1);
  }
  close(ends[1]);
  Loaded loaded;
  if (read(ends[0], &loaded, sizeof loaded) != sizeof loaded) loaded = {};
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return loaded;
}

TEST(Memory, ALoadedModelIsItsPackedWeightsAndItsPool) {
  const std::string path = test::RealModelPath();
  const auto file = model::GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status() << "; tests/run.sh fetches the model";
  int64_t largest = 0;
  for (const model::GgufTensor& tensor : (*file)->tensors()) {
    largest = std::max(largest, tensor.bytes);
  }

  const Loaded loaded = LoadInAnotherProcess(path);
  ASSERT_GT(loaded.weights, 0);
  EXPECT_LE(loaded.weights, (*file)->file_bytes() * 115 / 100);
  EXPECT_LE(loaded.pool, kKvMemory);
  EXPECT_GE(loaded.resident, loaded.weights);
  EXPECT_LE(loaded.resident, loaded.weights + loaded.pool + kRest);
  EXPECT_LE(loaded.highest, loaded.resident + largest);
}

}  // namespace
}  // namespace setu
