// SPDX-License-Identifier: Apache-2.0
#include "services/router/fair_lines.h"

#include <algorithm>
#include <iterator>

#include "common/base/check.h"

namespace setu::router {

void FairLines::Add(const Share& share, uint64_t entry) {
  const auto line = lines_.try_emplace(share.tenant).first;
  if (!line->second.entries.empty()) {
    weights_ -= line->second.weight;
  } else {
    line->second.had = std::max(line->second.had, now_had_ - kBurst);
    turns_.emplace(line->second.had, share.tenant);
  }
  weights_ += line->second.weight = share.weight;
  line->second.entries.insert(entry);
  ++size_;
}

void FairLines::Remove(uint32_t tenant, uint64_t entry) {
  const auto line = lines_.find(tenant);
  SETU_CHECK(line != lines_.end() && line->second.entries.erase(entry) == 1,
             "only an entry of the line leaves it");
  --size_;
  if (!line->second.entries.empty()) return;
  turns_.erase({line->second.had, tenant});
  weights_ -= line->second.weight;
}

void FairLines::Charge(uint32_t tenant, int64_t work) {
  const auto line = lines_.find(tenant);
  const double had = line->second.had;
  now_had_ = std::max(now_had_, had);
  SetHad(line, had + static_cast<double>(work) / line->second.weight);
}

void FairLines::Settle(uint32_t tenant, int64_t work) {
  const auto line = lines_.find(tenant);
  if (line == lines_.end()) return;
  const double before = line->second.had;
  const double had = before + static_cast<double>(work) / line->second.weight;
  SetHad(line, std::max(had, std::min(before, now_had_)));
}

void FairLines::SetHad(Lines::iterator line, double had) {
  const bool waits = turns_.erase({line->second.had, line->first}) == 1;
  line->second.had = had;
  if (waits) turns_.emplace(had, line->first);
}

std::vector<uint64_t> FairLines::First(size_t most) const {
  std::vector<uint64_t> first;
  for (size_t place = 0; place < most; ++place) {
    size_t lines = most;  // more could not be among the first
    for (auto turn = turns_.begin(); turn != turns_.end() && lines > 0; ++turn, --lines) {
      const std::set<uint64_t>& entries = lines_.at(turn->second).entries;
      if (first.size() == most) return first;
      if (place >= entries.size()) continue;
      first.push_back(*std::next(entries.begin(), static_cast<ptrdiff_t>(place)));
    }
  }
  return first;
}

std::optional<uint64_t> FairLines::NewestOf(uint32_t tenant) const {
  const auto line = lines_.find(tenant);
  if (line == lines_.end() || line->second.entries.empty()) return std::nullopt;
  return *line->second.entries.rbegin();
}

size_t FairLines::Ahead(const Share& share) const {
  const auto line = lines_.find(share.tenant);
  const bool waits = line != lines_.end() && !line->second.entries.empty();
  const size_t own = waits ? line->second.entries.size() : 0;
  const uint64_t others = weights_ - (waits ? line->second.weight : 0);
  // Each time that it has a turn, they have theirs.
  return std::min<size_t>(size_, own + (own + 1) * others / share.weight);
}

}  // namespace setu::router
