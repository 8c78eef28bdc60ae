// SPDX-License-Identifier: Apache-2.0
// Runs seeds of the simulated cluster, or one of them again:
//
//   simulate --mode safety --seeds 500
//   simulate --mode liveness --seed 4711 --trace
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/simulator/sweep.h"

int main(int count, char** arguments) {
  using namespace setu::simulator;
  Sweep sweep;
  for (int i = 1; i < count; ++i) {
    const std::string flag = arguments[i];
    const bool more = i + 1 < count;
    if (flag == "--trace") {
      sweep.trace = true;
    } else if (flag == "--mode" && more) {
      sweep.mode = arguments[++i] == std::string("safety") ? Mode::kSafety : Mode::kLiveness;
    } else if (flag == "--seeds" && more) {
      sweep.seeds = std::strtoull(arguments[++i], nullptr, 10);
    } else if (flag == "--seed" && more) {
      sweep.first = std::strtoull(arguments[++i], nullptr, 10);
      sweep.seeds = 1;
    } else if (flag == "--first" && more) {
      sweep.first = std::strtoull(arguments[++i], nullptr, 10);
    } else {
      std::fprintf(stderr,
                   "usage: simulate --mode safety|liveness [--seeds N] [--first N]\n"
                   "       simulate --mode safety|liveness --seed N [--trace]\n");
      return 2;
    }
  }
  return RunSweep(sweep) ? 0 : 1;
}
