// SPDX-License-Identifier: Apache-2.0
// Many seeds one after another, up to the first that goes wrong: its number, its trace and how to
// see it again are printed, also where the process dies of a failed check.
#ifndef SETU_TESTS_SIMULATOR_SWEEP_H_
#define SETU_TESTS_SIMULATOR_SWEEP_H_

#include <cstdint>

#include "tests/simulator/scenario.h"

namespace setu::simulator {

struct Sweep {
  Mode mode = Mode::kSafety;
  uint64_t first = 1;
  uint64_t seeds = 500;
  bool trace = false;  // print what happens in each
};

// False where a seed went wrong.
bool RunSweep(const Sweep& sweep);

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_SWEEP_H_
