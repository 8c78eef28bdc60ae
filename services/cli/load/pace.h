// SPDX-License-Identifier: Apache-2.0
// Which request of a workload may start now. Pure: the time is told, from the start of its round.
//
//   Pace pace(workload, seeds.shape);
//   while (std::optional<Duration> planned = pace.Due(now, open)) Send(*planned);   // ++open
//   if (pace.Over(now)) ...no other will start
//   else wait for pace.Next(), where it is, or for the end of a request
#ifndef SETU_SERVICES_CLI_LOAD_PACE_H_
#define SETU_SERVICES_CLI_LOAD_PACE_H_

#include <cstdint>
#include <optional>

#include "services/cli/load/workload.h"

namespace setu::cli {

class Pace {
 public:
  // The workload must outlive the pace.
  Pace(const Workload& workload, uint64_t seed);

  // When the next request was planned to start, where it may at `now` with so many under way; it
  // counts as started. In an open process that is its arrival, even where `now` is later.
  std::optional<Duration> Due(Duration now, int64_t open);
  // When one will be due, whatever ends; of open processes only.
  std::optional<Duration> Next() const { return arrival_; }
  bool Over(Duration now) const;
  int64_t started() const { return started_; }

 private:
  bool LoopLets(int64_t open);

  const Workload& workload_;
  std::optional<ArrivalTimes> times_;  // of an open process
  std::optional<Duration> arrival_;    // the next one of it
  int64_t started_ = 0;
  int32_t batch_left_ = 0;  // of a lockstep: still to start
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_PACE_H_
