// SPDX-License-Identifier: Apache-2.0
#include "services/router/admission_queue.h"

#include <algorithm>

#include "common/base/check.h"

namespace setu::router {

AdmissionQueue::AdmissionQueue(const Config& config) : config_(config) {}

std::optional<AdmissionQueue::Ticket> AdmissionQueue::Push(uint64_t request, TimePoint now,
                                                           TimePoint deadline) {
  if (new_prompts_ >= config_.capacity) return std::nullopt;
  ++new_prompts_;
  return Insert(/*is_new=*/true, request, now, deadline);
}

AdmissionQueue::Ticket AdmissionQueue::PushResume(uint64_t request, TimePoint now,
                                                  TimePoint deadline) {
  return Insert(/*is_new=*/false, request, now, deadline);
}

AdmissionQueue::Ticket AdmissionQueue::Insert(bool is_new, uint64_t request, TimePoint now,
                                              TimePoint deadline) {
  const Ticket ticket{.is_new = is_new, .arrival = next_arrival_++};
  const TimePoint timeout = now + (is_new ? config_.queue_timeout : config_.resume_timeout);
  const Entry entry{.request = request,
                    .expiry = std::min(deadline, timeout),
                    .reason = deadline <= timeout ? Reason::kDeadline : Reason::kTimeout};
  entries_.emplace(ticket, entry);
  expiries_.emplace(entry.expiry, ticket);
  return ticket;
}

std::optional<uint64_t> AdmissionQueue::Front() const {
  if (entries_.empty()) return std::nullopt;
  return entries_.begin()->second.request;
}

uint64_t AdmissionQueue::PopFront() {
  SETU_CHECK(!entries_.empty(), "only a queue with entries has a front");
  const uint64_t request = entries_.begin()->second.request;
  Erase(entries_.begin());
  return request;
}

bool AdmissionQueue::Remove(const Ticket& ticket) {
  auto entry = entries_.find(ticket);
  if (entry == entries_.end()) return false;
  Erase(entry);
  return true;
}

void AdmissionQueue::Erase(std::map<Ticket, Entry>::iterator entry) {
  if (entry->first.is_new) --new_prompts_;
  expiries_.erase({entry->second.expiry, entry->first});
  entries_.erase(entry);
}

std::vector<AdmissionQueue::Expired> AdmissionQueue::Expire(TimePoint now) {
  std::vector<Expired> expired;
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    auto entry = entries_.find(expiries_.begin()->second);
    expired.push_back({.request = entry->second.request,
                       .is_new = entry->first.is_new,
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
