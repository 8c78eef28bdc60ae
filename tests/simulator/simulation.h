// SPDX-License-Identifier: Apache-2.0
// One seed, from the start of its cluster to its rest.
//
//   const Outcome outcome = Simulate(4711, Mode::kSafety, /*trace=*/true);
//   if (!outcome.wrong.empty()) for (const std::string& line : outcome.trace) ...
#ifndef SETU_TESTS_SIMULATOR_SIMULATION_H_
#define SETU_TESTS_SIMULATOR_SIMULATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/simulator/scenario.h"

namespace setu::simulator {

struct Outcome {
  std::string wrong;               // empty: nothing
  std::vector<std::string> trace;  // where it was asked for
  uint64_t digest = 0;             // equal for equal runs
  uint64_t events = 0;
  std::map<std::string, uint64_t> counts;  // of what happened: ends by status, resumes, ...
};

Outcome Simulate(uint64_t seed, Mode mode, bool trace);

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_SIMULATION_H_
