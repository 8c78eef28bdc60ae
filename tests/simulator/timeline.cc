// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/timeline.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "tests/simulator/dice.h"

namespace setu::simulator {

bool Timeline::Later(const Planned& a, const Planned& b) {
  return std::tie(a.when, a.number) > std::tie(b.when, b.number);
}

void Timeline::At(TimePoint when, Event event) {
  heap_.push_back({std::max(when, now_), planned_++, std::move(event)});
  std::push_heap(heap_.begin(), heap_.end(), Later);
}

bool Timeline::RunNext() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), Later);
  Planned next = std::move(heap_.back());
  heap_.pop_back();
  now_ = next.when;
  ++events_;
  next.event();
  return true;
}

void Timeline::Tell(const char* what, const std::string& who) {
  digest_ = Mixed(digest_ ^ static_cast<uint64_t>(now_.time_since_epoch().count()));
  for (const char* c = what; *c != '\0'; ++c) digest_ = Mixed(digest_ + static_cast<uint8_t>(*c));
  for (const char c : who) digest_ = Mixed(digest_ + static_cast<uint8_t>(c));
  if (!trace_) return;
  const std::chrono::duration<double> seconds = now_.time_since_epoch();
  lines_.push_back(absl::StrFormat("%12.6f  %-16s %s", seconds.count() - 1000, what, who));
}

}  // namespace setu::simulator
