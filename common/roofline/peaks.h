// SPDX-License-Identifier: Apache-2.0
// What this machine can do at most with a loaded model: measured, not looked up.
//
//   const HostLock lock(ProbeLockPath(), std::chrono::seconds(1));     // host_lock.h
//   Peaks peaks = MeasurePeaks(runner.ops(), runner.weights());
//   peaks.ridge()         // operations per byte where memory stops being the limit
//
// Bandwidth is that of reading the model's own packed weights with all threads, so it costs no
// memory. Where they are less than twice the last cache, it is the cache's: see cache_resident.
// Arithmetic is the numeric path's multiplying instruction on random operands in registers
// (kernels/cpu/probe_impl.h says which). The best of several short runs counts: other load on the
// machine can only take away.
#ifndef SETU_COMMON_ROOFLINE_PEAKS_H_
#define SETU_COMMON_ROOFLINE_PEAKS_H_

#include <cstdint>
#include <filesystem>
#include <vector>

#include "common/model/weights.h"
#include "common/roofline/step_work.h"
#include "kernels/ops.h"

namespace setu::roofline {

struct Peaks {
  double bytes_per_second = 0;       // read
  double operations_per_second = 0;  // multiplications and additions
  int64_t weight_bytes = 0;
  int64_t l3_bytes = 0;  // 0: not known

  // What is read this often stays in the cache: the figures say little about memory.
  bool cache_resident() const { return weight_bytes < 2 * l3_bytes; }
  double ridge() const { return operations_per_second / bytes_per_second; }
  // Where a step did more than the probe, or another probe: then that is the peak.
  void Raise(const StepWork& work, double seconds);
  void Raise(const Peaks& seen);
};

// A probe in slices, between which its owner may do something else.
class PeakProbe {
 public:
  PeakProbe(kernels::Ops& ops, const model::Weights& weights);
  // Some milliseconds of it. True once that was the last.
  bool Slice();
  const Peaks& peaks() const { return peaks_; }  // of the slices so far

 private:
  bool ReadSlice();
  bool ProductSlice();

  kernels::Ops& ops_;
  const kernels::PackedMatrix& multiplied_;
  std::vector<const kernels::PackedMatrix*> read_;
  size_t next_ = 0;         // of read_
  int reading_rounds_ = 0;  // over all of read_
  double reading_ = 0;      // seconds
  int64_t product_rounds_ = 16;
  int product_runs_ = 0;
  Peaks peaks_;
};

// All slices: about 0.1 s, with small weights a few milliseconds.
Peaks MeasurePeaks(kernels::Ops& ops, const model::Weights& weights);

// Bytes per second of reading all packed weights once: no peak, but what memory gives just now.
double ReadWeights(kernels::Ops& ops, const model::Weights& weights);

// Of the caches that this process's first core reaches, the last one; 0 where the system does not
// say. From sysfs under `root`: sysconf is ten times off on some virtual AMD machines.
int64_t LastCacheBytes(const std::filesystem::path& root = "/");

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_PEAKS_H_
