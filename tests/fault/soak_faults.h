// SPDX-License-Identifier: Apache-2.0
// Misfortunes of a cluster with two workers of each kind: one worker at a time dies, is told to
// leave, freezes or has a link go bad, and comes back. The other one is always there, so no request
// may notice.
#ifndef SETU_TESTS_FAULT_SOAK_FAULTS_H_
#define SETU_TESTS_FAULT_SOAK_FAULTS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>

#include "tests/fault/links.h"
#include "tests/support/process_cluster.h"

namespace setu::test {

class SoakFaults {
 public:
  struct Counts {
    std::atomic<uint64_t> kills = 0, drains = 0, freezes = 0, links = 0;
  };

  SoakFaults(ProcessCluster& cluster, Links& links, uint64_t seed)
      : cluster_(cluster), links_(links), random_(seed) {}

  // One after another until then; whatever was hit is back at the end. A worker lives no longer
  // than the thread that started it, so this is for the test's own.
  void RunUntil(std::chrono::steady_clock::time_point end);
  const Counts& counts() const { return counts_; }

 private:
  void Hit();
  void HarmLink();
  std::chrono::milliseconds UpTo(std::chrono::milliseconds limit);

  ProcessCluster& cluster_;
  Links& links_;
  std::mt19937_64 random_;
  Counts counts_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_FAULT_SOAK_FAULTS_H_
