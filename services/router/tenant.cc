// SPDX-License-Identifier: Apache-2.0
#include "services/router/tenant.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace setu::router {
namespace {

using Minutes = std::chrono::duration<double, std::ratio<60>>;

}  // namespace

Tenant::Tenant(uint32_t number, uint64_t cache_salt, const Limits& limits)
    : number_(number), cache_salt_(cache_salt), weight_(limits.weight), limits_(limits) {}

void Tenant::SetLimits(const Limits& limits) {
  const std::lock_guard lock(mutex_);
  if (limits.tokens_per_minute != limits_.tokens_per_minute) filled_.reset();
  limits_ = limits;
  weight_ = limits.weight;
}

absl::Status Tenant::Enter(TimePoint now) {
  const std::lock_guard lock(mutex_);
  Refill(now);
  if (limits_.requests && running_ >= *limits_.requests) {
    return absl::ResourceExhaustedError(
        absl::StrCat("quota: ", running_, " requests of this tenant are under way, at most ",
                     *limits_.requests, " may be; retry when one of them has ended"));
  }
  const absl::Status tokens = CheckTokens();
  if (tokens.ok()) ++running_;
  return tokens;
}

void Tenant::Leave() {
  const std::lock_guard lock(mutex_);
  --running_;
}

absl::Status Tenant::Begin(int64_t tokens, TimePoint now) {
  const std::lock_guard lock(mutex_);
  Refill(now);
  const absl::Status left = CheckTokens();
  if (left.ok()) tokens_ -= static_cast<double>(tokens);
  return left;
}

void Tenant::Settle(int64_t tokens, TimePoint now) {
  const std::lock_guard lock(mutex_);
  Refill(now);
  tokens_ -= static_cast<double>(tokens);
}

absl::Status Tenant::CheckTokens() const {
  if (!limits_.tokens_per_minute || tokens_ > 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("quota: this tenant has spent its ", *limits_.tokens_per_minute,
                   " tokens a minute; retry after the delay given"));
}

Duration Tenant::RetryAfter(TimePoint now) {
  const std::lock_guard lock(mutex_);
  Refill(now);
  if (!limits_.tokens_per_minute || tokens_ > 0) return Duration::zero();
  const Minutes until((1 - tokens_) / static_cast<double>(*limits_.tokens_per_minute));
  return std::chrono::duration_cast<Duration>(until);
}

void Tenant::Refill(TimePoint now) {
  if (!limits_.tokens_per_minute) return;
  const auto most = static_cast<double>(*limits_.tokens_per_minute);
  if (!filled_) tokens_ = most;
  tokens_ = std::min(most, tokens_ + most * Minutes(now - filled_.value_or(now)).count());
  filled_ = now;
}

absl::StatusOr<std::shared_ptr<Visit>> Visit::Enter(Caller caller, TimePoint now) {
  if (absl::Status refused = caller.tenant->Enter(now); !refused.ok()) return refused;
  return std::shared_ptr<Visit>(new Visit(std::move(caller)));
}

}  // namespace setu::router
