// SPDX-License-Identifier: Apache-2.0
// What a prefill worker tells about itself: made by its loop after each step or change, read by
// metrics, load reports and the log.
#ifndef SETU_SERVICES_PREFILL_SNAPSHOT_H_
#define SETU_SERVICES_PREFILL_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/roofline/meter.h"
#include "setu/worker/v1/worker.pb.h"

namespace setu::prefill {

// Always: admitted == finished + failed + cancelled + running + queued.
struct Snapshot {
  uint64_t admitted = 0;
  uint64_t finished = 0;
  uint64_t failed = 0;
  uint64_t cancelled = 0;
  uint64_t refused_invalid = 0;  // not admitted: wrong,
  uint64_t refused_full = 0;     // without a place in the queue,
  uint64_t refused_draining = 0;
  int32_t running = 0;  // hold blocks: compute, push, or unwind
  int32_t queued = 0;
  int64_t queued_tokens = 0;  // still to compute, of running prompts too
  uint64_t tokens = 0;        // computed
  uint64_t steps = 0;
  uint64_t kv_bytes = 0;             // of pushes that have ended
  uint64_t kv_bytes_by_shm = 0;      // of them, through shared memory
  uint64_t prefix_tokens_asked = 0;  // of all prompts that started
  uint64_t prefix_tokens_known = 0;  // of them, found in blocks here and not computed
  TimePoint at{};                    // when it was taken, where it was asked for
  Duration busy{};                   // inside steps until then, the running one included
  double tokens_per_second = 0.0;    // of the last steps; 0: not known yet
  roofline::Figures roofline;
  int32_t blocks_total = 0;
  int32_t blocks_free = 0;    // the cached ones among them
  int32_t blocks_cached = 0;  // held by nobody, with KV that may be found again
  bool draining = false;
};

// For the log; nullopt where the worker was idle:
// "812 tok/s, busy 97 %, 3 running, 5 queued (4096 tok), KV 12.5 MB/s, 210/256 blocks free"
std::optional<std::string> FiguresLine(const Snapshot& before, const Snapshot& now);

// For routers.
worker::v1::WatchLoadResponse Report(const Snapshot& snapshot, int32_t running_max);

}  // namespace setu::prefill

#endif  // SETU_SERVICES_PREFILL_SNAPSHOT_H_
