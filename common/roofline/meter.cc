// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/meter.h"

#include <algorithm>

#include "common/roofline/timing.h"

namespace setu::roofline {

void Meter::CountStep(const StepRows& rows, Duration took) {
  const StepWork work = WorkOf(model_.shape, rows);
  work_ += work;
  window_.work += work;
  window_.terms += model_.Terms(rows);
  window_.busy += Seconds(took);
  if (took > Duration::zero()) model_.peaks.Raise(work, Seconds(took));
}

void Meter::CountLinkWait(Duration took) { window_.waiting_link += Seconds(took); }

void Meter::CountTransfer(uint64_t bytes, Duration took) {
  if (took <= Duration::zero()) return;
  link_peak_ = std::max(link_peak_, static_cast<double>(bytes) / Seconds(took));
}

bool Meter::quiet() const {
  const bool worked = window_.busy > 0 || window_.waiting_link > 0;
  return !worked && (verdict_.limit == Limit::kIdle || verdict_.limit == Limit::kStarved);
}

void Meter::Look(TimePoint now, bool prompts_wait) {
  if (quiet()) verdict_.limit = prompts_wait ? Limit::kStarved : Limit::kIdle;
  if (now - begin_ < kWindow) return;
  // An owner that slept did not look: what went before its work is no part of this window.
  window_.seconds = std::min(Seconds(now - begin_),
                             std::max(Seconds(kWindow), window_.busy + window_.waiting_link));
  verdict_ = Judge(window_, model_.peaks, prompts_wait);
  window_ = {};
  begin_ = now;
}

std::optional<TimePoint> Meter::next_look() const {
  return quiet() ? std::nullopt : std::optional(begin_ + kWindow);
}

Figures FiguresOf(const Meter& meter) {
  return {meter.verdict(), meter.peaks(), meter.link_peak(), meter.work().bytes(),
          meter.work().operations()};
}

}  // namespace setu::roofline
