// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/sweep.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>

#include "tests/simulator/simulation.h"

namespace setu::simulator {
namespace {

constexpr size_t kTraceLines = 200;  // the last ones of a seed that went wrong by itself

const char* Name(Mode mode) { return mode == Mode::kSafety ? "safety" : "liveness"; }

void PrintTrace(const std::vector<std::string>& lines, size_t most) {
  const size_t from = lines.size() > most ? lines.size() - most : 0;
  for (size_t i = from; i < lines.size(); ++i) std::puts(lines[i].c_str());
}

void SayHowToReplay(Mode mode, uint64_t seed) {
  std::printf("replay: simulate --mode %s --seed %" PRIu64 " --trace\n", Name(mode), seed);
  std::fflush(stdout);
}

bool RunSeeds(const Sweep& sweep, std::atomic<uint64_t>& current) {
  std::map<std::string, uint64_t> counts;
  for (uint64_t seed = sweep.first; seed < sweep.first + sweep.seeds; ++seed) {
    current = seed;
    Outcome outcome = Simulate(seed, sweep.mode, sweep.trace);
    if (sweep.trace) PrintTrace(outcome.trace, outcome.trace.size());
    for (const auto& [what, count] : outcome.counts) counts[what] += count;
    counts["events"] += outcome.events;
    if (outcome.wrong.empty()) continue;
    if (!sweep.trace) PrintTrace(Simulate(seed, sweep.mode, true).trace, kTraceLines);
    std::printf("WRONG: %s seed %" PRIu64 ": %s\n", Name(sweep.mode), seed, outcome.wrong.c_str());
    SayHowToReplay(sweep.mode, seed);
    return false;
  }
  std::printf("%s: %" PRIu64 " seeds clean", Name(sweep.mode), sweep.seeds);
  for (const auto& [what, count] : counts) std::printf(", %s %" PRIu64, what.c_str(), count);
  std::puts("");
  std::fflush(stdout);
  return true;
}

}  // namespace

// In a child, so that somebody is left to tell which seed it died of.
bool RunSweep(const Sweep& sweep) {
  void* shared = mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return false;
  auto& current = *new (shared) std::atomic<uint64_t>(sweep.first);
  const pid_t child = fork();
  if (child == 0) std::exit(RunSeeds(sweep, current) ? 0 : 1);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return false;
  if (WIFSIGNALED(status)) {
    std::printf("WRONG: %s seed %" PRIu64 ": died of signal %d\n", Name(sweep.mode), current.load(),
                WTERMSIG(status));
    SayHowToReplay(sweep.mode, current);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace setu::simulator
