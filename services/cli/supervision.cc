// SPDX-License-Identifier: Apache-2.0
#include "services/cli/supervision.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace setu::cli {
namespace {

constexpr Duration kFirst = std::chrono::milliseconds(500);
constexpr Duration kLongest = std::chrono::seconds(30);
constexpr Duration kHealthy = std::chrono::minutes(1);
constexpr int64_t kMostKvBytes = int64_t{4} << 30;

}  // namespace

Share DivideMachine(int32_t cores, int64_t kv_bytes, int32_t workers) {
  return {.threads = std::max(cores / workers, 1), .kv_bytes = kv_bytes / workers};
}

int64_t DefaultKvBytes(int64_t memory_bytes, int32_t workers) {
  return std::min(memory_bytes / 4, workers * kMostKvBytes);
}

absl::Status CheckKvMemory(int64_t kv_bytes, int64_t weight_bytes, int32_t workers,
                           int64_t memory_bytes) {
  const int64_t most = std::max<int64_t>(memory_bytes - workers * weight_bytes, 0);
  if (kv_bytes <= most) return absl::OkStatus();
  const auto mib = [](int64_t bytes) { return absl::StrCat(bytes >> 20, "MiB"); };
  return absl::InvalidArgumentError(
      absl::StrCat("--kv-memory is ", mib(kv_bytes), " for all workers; it must be at most ",
                   mib(most), ": the memory limit is ", mib(memory_bytes), ", and the weights of ",
                   workers, " workers take ", mib(workers * weight_bytes), " of it"));
}

Duration RestartBackoff::AfterDeath(Duration lived) {
  if (lived >= kHealthy) next_ = kFirst;
  const Duration wait = next_;
  next_ = std::min(next_ * 2, kLongest);
  return wait;
}

}  // namespace setu::cli
