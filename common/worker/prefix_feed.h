// SPDX-License-Identifier: Apache-2.0
// A worker's known blocks as routers follow them: a snapshot first, then what changed. Whoever
// reads too seldom for what is kept of the changes gets a snapshot again.
//
//   feed.Append(cache.TakeChanges());             // the loop's thread, after a step
//   *report.mutable_prefixes() = feed.Since(cursor);   // a watch; moves its cursor
//
// Not safe for threads: WorkerService guards it.
#ifndef SETU_COMMON_WORKER_PREFIX_FEED_H_
#define SETU_COMMON_WORKER_PREFIX_FEED_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_set>

#include "common/kv/prefix_cache.h"
#include "setu/worker/v1/worker.pb.h"

namespace setu::worker {

class PrefixFeed {
 public:
  // Changes that are kept for readers.
  static constexpr size_t kKept = 1 << 14;
  // Blocks of a snapshot, so that it fits a message: of a larger pool some are never told.
  static constexpr size_t kSnapshot = 1 << 18;

  void Append(std::span<const kv::PrefixChange> changes);
  // Net of what came since `cursor`, a number of changes; nullopt: a reader that knows nothing.
  v1::PrefixChanges Since(std::optional<uint64_t>& cursor) const;

 private:
  std::unordered_set<kv::BlockHash> known_;
  std::deque<kv::PrefixChange> kept_;
  uint64_t appended_ = 0;  // ever
};

}  // namespace setu::worker

#endif  // SETU_COMMON_WORKER_PREFIX_FEED_H_
