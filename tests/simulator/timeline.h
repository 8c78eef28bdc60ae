// SPDX-License-Identifier: Apache-2.0
// Virtual time: events run in the order of their times, those of one time in the order in which
// they were planned. Nothing waits; what takes long is only far away.
//
//   Timeline timeline;
//   timeline.After(std::chrono::milliseconds(3), "heal", [&] { network.Heal(); });
//   while (timeline.RunNext()) CheckInvariants();
#ifndef SETU_TESTS_SIMULATOR_TIMELINE_H_
#define SETU_TESTS_SIMULATOR_TIMELINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "common/base/clock.h"

namespace setu::simulator {

class Timeline final : public Clock {
 public:
  using Event = absl::AnyInvocable<void()>;

  // With `trace` every line told is kept, not only digested.
  explicit Timeline(bool trace) : trace_(trace) {}

  TimePoint Now() const override { return now_; }
  void At(TimePoint when, Event event);
  void After(Duration wait, Event event) { At(now_ + wait, std::move(event)); }
  // False where nothing is left.
  bool RunNext();

  // What happens, for whoever reads a trace; its digest tells whether two runs were the same.
  void Tell(const char* what, const std::string& who);
  bool traces() const { return trace_; }
  const std::vector<std::string>& lines() const { return lines_; }
  uint64_t digest() const { return digest_; }
  uint64_t events() const { return events_; }

 private:
  struct Planned {
    TimePoint when;
    uint64_t number = 0;
    Event event;
  };
  static bool Later(const Planned& a, const Planned& b);

  const bool trace_;
  TimePoint now_{std::chrono::seconds(1000)};
  std::vector<Planned> heap_;
  uint64_t planned_ = 0;
  uint64_t events_ = 0;
  uint64_t digest_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_TIMELINE_H_
