// SPDX-License-Identifier: Apache-2.0
// How a router stands, as others see it.
#ifndef SETU_SERVICES_ROUTER_SNAPSHOT_H_
#define SETU_SERVICES_ROUTER_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "services/router/circuit.h"
#include "services/router/standing.h"

namespace setu::router {

// Sequences that went on in another stream, by why.
struct ResumeCounts {
  uint64_t preempted = 0;   // their worker had room again
  uint64_t rebalanced = 0;  // it was full, and another had room
  uint64_t drained = 0;
  uint64_t lost = 0;
  uint64_t total() const { return preempted + rebalanced + drained + lost; }
};

// In every snapshot admitted == finished + failed + cancelled + running.
struct RouterSnapshot {
  uint64_t admitted = 0;
  uint64_t finished = 0;
  uint64_t failed = 0;
  uint64_t cancelled = 0;  // by the client or by its deadline
  uint64_t running = 0;    // from validation to the end, the queue included
  // Refused before admission: wrong, for lack of room, for lack of time, over its tenant's quota,
  // while draining, for lack of workers that fit.
  uint64_t refused_invalid = 0;
  uint64_t refused_full = 0;
  uint64_t refused_late = 0;
  uint64_t refused_quota = 0;
  uint64_t refused_draining = 0;
  uint64_t refused_no_workers = 0;
  ResumeCounts resumes;
  uint64_t retries = 0;
  uint64_t local_prefills = 0;
  CircuitsOpened circuits_opened;
  size_t queue_length = 0;
  size_t prefill_workers = 0;  // that may get new work
  size_t decode_workers = 0;
  size_t prefix_blocks = 0;  // that some worker is known to have, each counted once
  UnusableWorkers prefill_unusable;
  UnusableWorkers decode_unusable;
  std::string numerics;  // of the workers; empty where there are none
  Duration retry_after{0};
  bool ready = false;
  bool draining = false;
};

// For the log; nullopt where nothing ran or was refused:
// "3 running, 1 queued, 2.4 finished/s, 0 failed, 0 refused, 0 resumes, 0 retries, 1+2 workers"
std::optional<std::string> FiguresLine(const RouterSnapshot& before, const RouterSnapshot& now,
                                       Duration between);

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_SNAPSHOT_H_
