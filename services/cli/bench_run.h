// SPDX-License-Identifier: Apache-2.0
// Runs the sides of a load in turn, round by round.
#ifndef SETU_SERVICES_CLI_BENCH_RUN_H_
#define SETU_SERVICES_CLI_BENCH_RUN_H_

#include <cstdint>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/load/report.h"
#include "services/cli/load/sides.h"

namespace setu::cli {

struct RunLimits {
  int32_t rounds = 1;
  int64_t most_open = 10'000;  // streams of open arrivals
  int64_t seed = 1;
  bool shows_progress = false;  // on stderr

  bool operator==(const RunLimits&) const = default;
};

// Blocks until all rounds are over, or a stop was requested: then of what had ended by then. An
// error where a router does not answer before its first round, or a knee has no answer.
absl::StatusOr<LoadReport> RunSides(std::vector<Side> sides, const RunLimits& limits,
                                    const std::stop_token& stop);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_BENCH_RUN_H_
