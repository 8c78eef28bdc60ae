// SPDX-License-Identifier: Apache-2.0
// One round of a load: all its workloads at once against one router, on the calling thread.
//
//   std::vector<Tally> tallies = RunRound(client, workloads, round, stop);
#ifndef SETU_SERVICES_CLI_LOAD_ROUND_H_
#define SETU_SERVICES_CLI_LOAD_ROUND_H_

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "services/cli/load/load_client.h"
#include "services/cli/load/plan.h"
#include "services/cli/load/tally.h"

namespace setu::cli {

struct Round {
  uint64_t seed;
  uint32_t number, side;                 // both from 0
  std::span<const uint32_t> vocabulary;  // ids that prompts are made of
  int64_t most_open;                     // streams
  TimePoint timeline_start;
  std::function<void()> on_end;  // after each request
};

// A tally for each workload. A stop breaks off what is open, and those requests are not counted.
std::vector<Tally> RunRound(LoadClient& client, const std::vector<Workload>& workloads,
                            const Round& round, const std::stop_token& stop);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_ROUND_H_
