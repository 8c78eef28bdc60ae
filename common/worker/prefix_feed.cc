// SPDX-License-Identifier: Apache-2.0
#include "common/worker/prefix_feed.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace setu::worker {

void PrefixFeed::Append(std::span<const kv::PrefixChange> changes) {
  for (const kv::PrefixChange& change : changes) {
    if (change.known) {
      known_.insert(change.hash);
    } else {
      known_.erase(change.hash);
    }
    kept_.push_back(change);
    if (kept_.size() > kKept) kept_.pop_front();
  }
  appended_ += changes.size();
}

v1::PrefixChanges PrefixFeed::Since(std::optional<uint64_t>& cursor) const {
  v1::PrefixChanges out;
  const uint64_t oldest = appended_ - kept_.size();
  if (!cursor || *cursor < oldest) {
    out.set_snapshot(true);
    out.set_since(appended_);
    const size_t told = std::min(known_.size(), kSnapshot);
    out.mutable_known()->Add(known_.begin(), std::next(known_.begin(), ptrdiff_t(told)));
  } else {
    out.set_since(*cursor);
    // Only how each one ended up counts.
    std::unordered_map<kv::BlockHash, bool> net;
    for (uint64_t i = *cursor - oldest; i < kept_.size(); ++i) net[kept_[i].hash] = kept_[i].known;
    for (const auto& [hash, known] : net)
      (known ? out.mutable_known() : out.mutable_forgotten())->Add(hash);
  }
  out.set_until(appended_);
  cursor = appended_;
  return out;
}

}  // namespace setu::worker
