// SPDX-License-Identifier: Apache-2.0
#include "services/router/admission_queue.h"

#include <algorithm>

#include "common/base/check.h"

namespace setu::router {

AdmissionQueue::AdmissionQueue(const Config& config) : config_(config) {}

std::optional<AdmissionQueue::Pushed> AdmissionQueue::Push(uint64_t request, const Share& share,
                                                           int64_t work, TimePoint now,
                                                           TimePoint deadline) {
  if (FullFor(share)) return std::nullopt;
  Pushed pushed;
  if (new_prompts_ >= static_cast<int64_t>(config_.capacity)) pushed.displaced = Displace();
  CountPlace(share, +1);
  if (latest_ && latest_->tenant != share.tenant) other_ = latest_;
  latest_ = {share.tenant, now};
  pushed.ticket =
      Insert({.request = request, .is_new = true, .share = share, .work = work}, now, deadline);
  return pushed;
}

AdmissionQueue::Ticket AdmissionQueue::PushResume(uint64_t request, Priority priority,
                                                  TimePoint now, TimePoint deadline) {
  return Insert({.request = request, .is_new = false, .share = {.priority = priority}}, now,
                deadline);
}

AdmissionQueue::Ticket AdmissionQueue::Insert(Entry entry, TimePoint now, TimePoint deadline) {
  const Ticket ticket{.arrival = next_arrival_++};
  const TimePoint timeout = now + (entry.is_new ? config_.queue_timeout : config_.resume_timeout);
  entry.arrived = now;
  entry.expiry = std::min(deadline, timeout);
  entry.reason = deadline <= timeout ? Reason::kDeadline : Reason::kTimeout;
  Class& its = ClassOf(entry.share.priority);
  if (its.size() == 0) its.since = now;
  if (entry.is_new) {
    its.prompts.Add(entry.share, ticket.arrival);
  } else {
    its.resumes.insert(ticket.arrival);
  }
  expiries_.emplace(entry.expiry, ticket);
  entries_.emplace(ticket, entry);
  return ticket;
}

void AdmissionQueue::Erase(Entries::iterator entry) {
  const auto& [ticket, its] = *entry;
  if (its.is_new) {
    ClassOf(its.share.priority).prompts.Remove(its.share.tenant, ticket.arrival);
    CountPlace(its.share, -1);
  } else {
    ClassOf(its.share.priority).resumes.erase(ticket.arrival);
  }
  expiries_.erase({its.expiry, ticket});
  entries_.erase(entry);
}

void AdmissionQueue::CountPlace(const Share& share, int change) {
  Holder& holder = holders_[share.tenant];
  most_held_.erase({holder.held(), share.tenant});
  holder.places += change;
  new_prompts_ += change;
  if (change > 0) holder.weight = share.weight;
  if (holder.places > 0) {
    most_held_.emplace(holder.held(), share.tenant);
  } else {
    holders_.erase(share.tenant);
  }
}

bool AdmissionQueue::FullFor(const Share& share) const {
  if (new_prompts_ < static_cast<int64_t>(config_.capacity)) return false;
  if (most_held_.empty()) return true;
  const auto holder = holders_.find(share.tenant);
  const Holder then{.places = holder == holders_.end() ? 1 : holder->second.places + 1,
                    .weight = share.weight};
  return then.held() >= most_held_.rbegin()->first;
}

// The newest of the lowest priority, of the tenant that holds most.
std::optional<uint64_t> AdmissionQueue::Displace() {
  const uint32_t tenant = most_held_.rbegin()->second;
  for (auto its = classes_.rbegin(); its != classes_.rend(); ++its) {
    const std::optional<uint64_t> newest = its->prompts.NewestOf(tenant);
    if (!newest) continue;
    const uint64_t request = entries_.at({*newest}).request;
    Remove({*newest});
    return request;
  }
  return std::nullopt;
}

size_t AdmissionQueue::Ahead(const Share& share) const {
  size_t ahead = 0;
  for (size_t i = 0; i < static_cast<size_t>(share.priority); ++i) ahead += classes_[i].size();
  const Class& its = classes_[static_cast<size_t>(share.priority)];
  return ahead + its.resumes.size() + its.prompts.Ahead(share);
}

bool AdmissionQueue::Shared(TimePoint now) const {
  return other_ && now - other_->at < config_.share_memory;
}

// Those that have waited too long before the others, the longest first; but never before a resume
// of the highest priority.
std::array<const AdmissionQueue::Class*, kPriorities> AdmissionQueue::InOrder(TimePoint now) const {
  std::array<const Class*, kPriorities> order{};
  std::transform(classes_.begin(), classes_.end(), order.begin(),
                 [](const Class& c) { return &c; });
  const auto since = [&](const Class* c) {
    const bool due =
        classes_[0].resumes.empty() && c->size() > 0 && now - c->since >= config_.age_bound;
    return due ? c->since : TimePoint::max();
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Class* a, const Class* b) { return since(a) < since(b); });
  return order;
}

std::vector<AdmissionQueue::Turn> AdmissionQueue::Turns(TimePoint now) const {
  std::vector<Turn> turns;
  size_t most = kMostTurns;
  const auto add = [&](uint64_t arrival) {
    const Entry& entry = entries_.at({arrival});
    if (turns.empty() && now - entry.arrived >= config_.age_bound) most = 1;
    if (turns.size() < most) turns.push_back({.ticket = {arrival}, .request = entry.request});
  };
  for (const Class* its : InOrder(now)) {
    for (uint64_t arrival : its->resumes) {
      if (turns.size() == most) return turns;
      add(arrival);
    }
    for (uint64_t arrival : its->prompts.First(most - turns.size())) add(arrival);
  }
  return turns;
}

uint64_t AdmissionQueue::Take(const Ticket& ticket, TimePoint now) {
  const auto entry = entries_.find(ticket);
  SETU_CHECK(entry != entries_.end(), "only what waits has a turn");
  const Entry taken = entry->second;
  Erase(entry);
  Class& its = ClassOf(taken.share.priority);
  its.since = now;
  if (taken.is_new) its.prompts.Charge(taken.share.tenant, taken.work);
  return taken.request;
}

bool AdmissionQueue::Remove(const Ticket& ticket) {
  const auto entry = entries_.find(ticket);
  if (entry == entries_.end()) return false;
  Erase(entry);
  return true;
}

void AdmissionQueue::Settle(const Share& share, int64_t work) {
  ClassOf(share.priority).prompts.Settle(share.tenant, work);
}

std::vector<AdmissionQueue::Expired> AdmissionQueue::Expire(TimePoint now) {
  std::vector<Expired> expired;
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    const auto entry = entries_.find(expiries_.begin()->second);
    expired.push_back({.request = entry->second.request,
                       .is_new = entry->second.is_new,
                       .reason = entry->second.reason});
    Erase(entry);
  }
  return expired;
}

std::optional<TimePoint> AdmissionQueue::NextExpiry() const {
  if (expiries_.empty()) return std::nullopt;
  return expiries_.begin()->first;
}

}  // namespace setu::router
