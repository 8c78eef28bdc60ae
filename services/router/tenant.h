// SPDX-License-Identifier: Apache-2.0
// One tenant: what it may have, and what it has under way. Any thread.
//
//   absl::StatusOr<std::shared_ptr<Visit>> visit = Visit::Enter({tenant, priority}, clock.Now());
//   if (!visit.ok()) return Exhausted(visit.status(), tenant->RetryAfter(clock.Now()));
//   SETU_RETURN_IF_ERROR((*visit)->Begin(expected_tokens, clock.Now()));
//   (*visit)->Settle(tokens - expected_tokens, clock.Now());    // and dropped: it is over
#ifndef SETU_SERVICES_ROUTER_TENANT_H_
#define SETU_SERVICES_ROUTER_TENANT_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "services/router/share.h"

namespace setu::router {

class Tenant {
 public:
  struct Limits {
    uint32_t weight = 1;
    std::optional<int64_t> requests;  // at once
    std::optional<int64_t>
        tokens_per_minute;  // of prompts and answers; a minute's may come at once
  };

  // `number` is its own in this process; `cache_salt` keeps its KV apart from others'.
  Tenant(uint32_t number, uint64_t cache_salt, const Limits& limits);

  void SetLimits(const Limits& limits);
  uint32_t number() const { return number_; }
  uint64_t cache_salt() const { return cache_salt_; }
  uint32_t weight() const { return weight_; }
  // Until it may spend tokens again; zero where that is now.
  Duration RetryAfter(TimePoint now);

  // The state of the queue in which it was full for this tenant.
  std::atomic<uint64_t> full_at = std::numeric_limits<uint64_t>::max();

 private:
  friend class Visit;
  absl::Status Enter(TimePoint now);
  void Leave();
  absl::Status Begin(int64_t tokens, TimePoint now);
  void Settle(int64_t tokens, TimePoint now);
  // The lock is held.
  void Refill(TimePoint now);
  absl::Status CheckTokens() const;

  const uint32_t number_;
  const uint64_t cache_salt_;
  std::atomic<uint32_t> weight_;
  std::mutex mutex_;
  Limits limits_;
  int64_t running_ = 0;
  double tokens_ = 0;  // that it may spend; below zero it has spent too many
  std::optional<TimePoint> filled_;
};

// Who sent a request: always some tenant.
struct Caller {
  Caller(std::shared_ptr<Tenant> whose, Priority of_requests)
      : tenant(std::move(whose)), priority(of_requests) {}

  std::shared_ptr<Tenant> tenant;
  Priority priority;
};

// A request of a tenant, from its arrival to its end: counted while this lives.
class Visit {
 public:
  // RESOURCE_EXHAUSTED where the tenant has all that it may have.
  static absl::StatusOr<std::shared_ptr<Visit>> Enter(Caller caller, TimePoint now);
  ~Visit() { caller_.tenant->Leave(); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  Share share() const {
    return {caller_.tenant->number(), caller_.tenant->weight(), caller_.priority};
  }
  Tenant& tenant() const { return *caller_.tenant; }
  // Spends so many tokens of its tenant's minute. RESOURCE_EXHAUSTED where others of the tenant
  // that came in with it have left none.
  absl::Status Begin(int64_t tokens, TimePoint now) { return caller_.tenant->Begin(tokens, now); }
  // It came to so many more than were spent, or fewer.
  void Settle(int64_t tokens, TimePoint now) { caller_.tenant->Settle(tokens, now); }

 private:
  explicit Visit(Caller caller) : caller_(std::move(caller)) {}
  const Caller caller_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_TENANT_H_
