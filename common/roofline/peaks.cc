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

// Reading goes round and round over the weights, a slice at a time, until either is reached. Small
// ones count several times in a round: handing a slice to the threads takes microseconds.
constexpr milliseconds kReadTime(60);
constexpr int kReadRounds = 8;
constexpr int64_t kLeastRoundBytes = 4 << 20;
constexpr int64_t kSliceBytes = 32 << 20;

constexpr std::chrono::microseconds kProductRun(500);
constexpr int kProductRuns = 5;

}  // namespace

void Peaks::Raise(const StepWork& work, double seconds) {
  bytes_per_second = std::max(bytes_per_second, work.bytes() / seconds);
  operations_per_second = std::max(operations_per_second, work.operations() / seconds);
}

void Peaks::Raise(const Peaks& seen) {
  bytes_per_second = std::max(bytes_per_second, seen.bytes_per_second);
  operations_per_second = std::max(operations_per_second, seen.operations_per_second);
}

PeakProbe::PeakProbe(kernels::Ops& ops, const model::Weights& weights)
    : ops_(ops), multiplied_(*weights.layers.front().w_gate), read_(MatricesOf(weights)) {
  peaks_.l3_bytes = LastCacheBytes();
  for (const PackedMatrix* matrix : read_) {
    peaks_.weight_bytes += static_cast<int64_t>(matrix->bytes());
  }
  // The output matrix alone may be a slice that takes too long.
  if (read_.back()->bytes() > kSliceBytes) read_.pop_back();
  const std::vector<const PackedMatrix*> once = read_;
  for (int64_t bytes = peaks_.weight_bytes; bytes < kLeastRoundBytes;
       bytes += peaks_.weight_bytes) {
    read_.insert(read_.end(), once.begin(), once.end());
  }
}

bool PeakProbe::Slice() { return ReadSlice() && ProductSlice(); }

// True where there was nothing left to read.
bool PeakProbe::ReadSlice() {
  if (reading_rounds_ == kReadRounds || reading_ > Seconds(kReadTime)) return true;
  const size_t first = next_;
  int64_t bytes = 0;
  while (next_ < read_.size() && bytes < kSliceBytes) {
    bytes += static_cast<int64_t>(read_[next_++]->bytes());
  }
  const auto slice = std::span<const PackedMatrix* const>(read_).subspan(first, next_ - first);
  const double seconds = SecondsOf([&] { ops_.ProbeReads(slice); });
  peaks_.bytes_per_second = std::max(peaks_.bytes_per_second, static_cast<double>(bytes) / seconds);
  reading_ += seconds;
  if (next_ == read_.size()) {
    next_ = 0;
    ++reading_rounds_;
  }
  return false;
}

// True where that was the last of the long runs.
bool PeakProbe::ProductSlice() {
  int64_t products = 0;
  const double seconds =
      SecondsOf([&] { products = ops_.ProbeProducts(multiplied_, product_rounds_); });
  peaks_.operations_per_second =
      std::max(peaks_.operations_per_second, 2.0 * static_cast<double>(products) / seconds);
  if (seconds < Seconds(kProductRun)) {
    product_rounds_ *= 2;
  } else {
    ++product_runs_;
  }
  return product_runs_ == kProductRuns;
}

Peaks MeasurePeaks(kernels::Ops& ops, const model::Weights& weights) {
  PeakProbe probe(ops, weights);
  while (!probe.Slice()) {
  }
  return probe.peaks();
}

double ReadWeights(kernels::Ops& ops, const model::Weights& weights) {
  const std::vector<const PackedMatrix*> all = MatricesOf(weights);
  double bytes = 0;
  for (const PackedMatrix* matrix : all) bytes += static_cast<double>(matrix->bytes());
  return bytes / SecondsOf([&] { ops.ProbeReads(all); });
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
