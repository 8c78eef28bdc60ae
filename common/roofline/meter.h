// SPDX-License-Identifier: Apache-2.0
// A worker's verdict about itself, kept up as it steps. One thread owns it; nothing here locks or
// allocates, so that it may stand on the way of a step.
//
//   Meter meter(MeasureStepModel(*runner), clock.Now());
//   meter.CountStep(rows, took);                       // after each step
//   meter.Look(clock.Now(), /*prompts_wait=*/false);   // now and then; by meter.next_look() if any
//   snapshot.roofline = FiguresOf(meter);
#ifndef SETU_COMMON_ROOFLINE_METER_H_
#define SETU_COMMON_ROOFLINE_METER_H_

#include <optional>

#include "common/base/clock.h"
#include "common/roofline/step_model.h"
#include "common/roofline/verdict.h"

namespace setu::roofline {

class Meter {
 public:
  // A verdict is about at least so long; a step that takes longer is one window.
  static constexpr Duration kWindow = std::chrono::seconds(1);

  Meter(const StepModel& model, TimePoint now) : model_(model), begin_(now) {}

  void CountStep(const StepRows& rows, Duration took);
  // Between steps, while computed KV was under way.
  void CountLinkWait(Duration took);
  // What was sent in so long, once there was nothing else to wait for.
  void CountTransfer(uint64_t bytes, Duration took);
  // What another probe saw.
  void Raise(const Peaks& seen) { model_.peaks.Raise(seen); }
  // Judges anew where a window has passed; where nothing was done, at once. `prompts_wait`: for
  // this worker, somewhere else.
  void Look(TimePoint now, bool prompts_wait);
  // When a look may find another verdict though nothing happens until then: after there was work.
  std::optional<TimePoint> next_look() const;

  const Verdict& verdict() const { return verdict_; }
  const StepWork& work() const { return work_; }  // of all steps
  const Peaks& peaks() const { return model_.peaks; }
  double link_peak() const { return link_peak_; }

 private:
  bool quiet() const;

  StepModel model_;
  TimePoint begin_;  // of the window
  Window window_;    // what it has so far
  StepWork work_;
  double link_peak_ = 0;
  Verdict verdict_;
};

// What a meter shows to others.
struct Figures {
  Verdict verdict;
  Peaks peaks;
  double link_bytes_per_second = 0;  // most that a transfer reached; 0: there was none
  double bytes = 0;                  // of all steps
  double operations = 0;
};
Figures FiguresOf(const Meter& meter);

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_METER_H_
