// SPDX-License-Identifier: Apache-2.0
// What a decode worker shows of itself, published whole by its loop. In every snapshot
// admitted == finished + failed + cancelled + running.
#ifndef SETU_SERVICES_DECODE_SNAPSHOT_H_
#define SETU_SERVICES_DECODE_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/roofline/meter.h"
#include "setu/worker/v1/worker.pb.h"

namespace setu::decode {

struct Snapshot {
  // Requests, each one Decode stream that was granted room.
  uint64_t admitted = 0;
  uint64_t finished = 0;   // every choice ended, was stopped or was preempted
  uint64_t failed = 0;     // ended by this worker with a status
  uint64_t cancelled = 0;  // ended by the router
  // Not admitted: wrong or can never fit, no room now, draining.
  uint64_t refused_invalid = 0;
  uint64_t refused_full = 0;
  uint64_t refused_draining = 0;
  int32_t running = 0;    // admitted and not over
  int32_t sequences = 0;  // choices that were promised a place in the batch or have one
  int32_t sequences_max = 0;
  int32_t transfers = 0;  // attempts whose frames are arriving
  int32_t prompts = 0;    // that are computed here, and their tokens still to compute
  int64_t prompt_tokens_left = 0;

  int32_t blocks_total = 0;
  int32_t blocks_held = 0;
  int32_t blocks_cached = 0;  // held by nobody, with KV that may be found again
  int32_t blocks_promised = 0;

  uint64_t steps = 0;
  uint64_t tokens = 0;         // generated here; over steps: the mean batch
  uint64_t prompt_tokens = 0;  // computed here
  uint64_t preemptions = 0;
  uint64_t kv_bytes_received = 0;
  uint64_t kv_bytes_by_shm = 0;  // of them, through shared memory
  // Transfers that began and brought no KV; a sender that only goes away is not counted.
  uint64_t transfers_corrupt = 0;
  uint64_t transfers_invalid = 0;
  uint64_t transfers_stalled = 0;
  uint64_t prefix_tokens_asked = 0;       // of all that was granted or refused room
  uint64_t prefix_tokens_known = 0;       // of them, found in blocks here
  TimePoint at{};                         // when it was taken, where it was asked for
  Duration busy{};                        // inside steps until then, the running one included
  Duration sampling{};                    // of it, outside the model
  Duration between_steps{};               // while there was work: events, bookkeeping, sending
  double tokens_per_second = 0.0;         // over the last busy steps
  double prompt_tokens_per_second = 0.0;  // that it could compute here now; 0: it does not
  roofline::Figures roofline;
  bool draining = false;
};

// For the log; nullopt where the worker was idle:
// "312 tok/s, batch 7.8, busy 97 %, 8 running, KV 12.5 MB/s, 210/256 blocks free, 0 preempted"
std::optional<std::string> FiguresLine(const Snapshot& before, const Snapshot& now);

// For routers.
worker::v1::WatchLoadResponse Report(const Snapshot& snapshot);

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_SNAPSHOT_H_
