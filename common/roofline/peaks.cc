// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/peaks.h"

#include <algorithm>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/roofline/timing.h"

namespace setu::roofline {
namespace {

using kernels::PackedMatrix;
using std::chrono::milliseconds;

// Reading goes round and round over the weights, a slice at a time, until either is reached.
constexpr milliseconds kReadTime(60);
constexpr int kReadRounds = 8;
constexpr int64_t kSliceBytes = 32 << 20;

constexpr std::chrono::microseconds kProductRun(500);
constexpr int kProductRuns = 5;

double ReadRate(kernels::Ops& ops, std::span<const PackedMatrix* const> matrices) {
  double best = 0, passed = 0;
  for (int round = 0; round < kReadRounds; ++round) {
    for (size_t first = 0, last = 0; first < matrices.size(); first = last) {
      int64_t bytes = 0;
      while (last < matrices.size() && bytes < kSliceBytes) {
        bytes += static_cast<int64_t>(matrices[last++]->bytes());
      }
      const auto slice = matrices.subspan(first, last - first);
      const double seconds = SecondsOf([&] { ops.ProbeReads(slice); });
      best = std::max(best, static_cast<double>(bytes) / seconds);
      passed += seconds;
      if (passed > Seconds(kReadTime)) return best;
    }
  }
  return best;
}

double ProductRate(kernels::Ops& ops, const PackedMatrix& weights) {
  double best = 0;
  int64_t rounds = 16;
  for (int run = 0; run < kProductRuns;) {
    int64_t products = 0;
    const double seconds = SecondsOf([&] { products = ops.ProbeProducts(weights, rounds); });
    best = std::max(best, 2.0 * static_cast<double>(products) / seconds);
    if (seconds < Seconds(kProductRun)) {
      rounds *= 2;
    } else {
      ++run;
    }
  }
  return best;
}

}  // namespace

void Peaks::Raise(const StepWork& work, double seconds) {
  bytes_per_second = std::max(bytes_per_second, work.bytes() / seconds);
  operations_per_second = std::max(operations_per_second, work.operations() / seconds);
}

Peaks MeasurePeaks(kernels::Ops& ops, const model::Weights& weights) {
  const std::vector<const PackedMatrix*> matrices = MatricesOf(weights);
  Peaks peaks = {.l3_bytes = LastCacheBytes()};
  for (const PackedMatrix* matrix : matrices) {
    peaks.weight_bytes += static_cast<int64_t>(matrix->bytes());
  }
  peaks.bytes_per_second = ReadRate(ops, matrices);
  peaks.operations_per_second = ProductRate(ops, *weights.layers.front().w_gate);
  return peaks;
}

int64_t LastCacheBytes(const std::filesystem::path& root) {
  int64_t last = 0;
  for (int index = 0; index < 8; ++index) {
    std::string size;
    std::ifstream(root / absl::StrCat("sys/devices/system/cpu/cpu0/cache/index", index, "/size")) >>
        size;
    int64_t kibibytes = 0;
    if (!size.ends_with('K') || !absl::SimpleAtoi(size.substr(0, size.size() - 1), &kibibytes)) {
      continue;
    }
    last = std::max(last, kibibytes << 10);
  }
  return last;
}

}  // namespace setu::roofline
