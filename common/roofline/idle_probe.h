// SPDX-License-Identifier: Apache-2.0
// Probes the peaks again while a worker has nothing to do: the first probe may have been made while
// others kept the machine busy. Rarely, under the host's lock, and in slices of some milliseconds,
// between which the worker looks whether anything has come. One thread.
//
//   IdleProbe probe(ops, weights, ProbeLockPath());
//   if (const auto peaks = probe.Turn(clock.Now(), idle)) meter.Raise(*peaks);   // between steps
//   sleep until an event or probe.next();
#ifndef SETU_COMMON_ROOFLINE_IDLE_PROBE_H_
#define SETU_COMMON_ROOFLINE_IDLE_PROBE_H_

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/model/weights.h"
#include "common/roofline/host_lock.h"
#include "common/roofline/peaks.h"
#include "kernels/ops.h"

namespace setu::roofline {

class IdleProbe {
 public:
  static constexpr Duration kIdle = std::chrono::seconds(10);   // at least, before
  static constexpr Duration kEvery = std::chrono::minutes(10);  // at most

  // `ops` and `weights` must outlive this. The peaks are taken to be just probed.
  IdleProbe(kernels::Ops& ops, const model::Weights& weights, std::string lock_path, TimePoint now);

  // Probes a slice, where it is time for that. What a whole probe saw, after its last slice; one
  // that work interrupts is given up.
  std::optional<Peaks> Turn(TimePoint now, bool idle);
  // When the next slice is due if nothing comes until then; nullopt while there is work.
  std::optional<TimePoint> next() const;

 private:
  void Stop(TimePoint next_after);

  kernels::Ops& ops_;
  const model::Weights& weights_;
  const std::string lock_path_;
  std::optional<TimePoint> idle_since_;
  TimePoint not_before_;
  std::optional<HostLock> lock_;  // while there is a probe
  std::optional<PeakProbe> probe_;
};

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_IDLE_PROBE_H_
