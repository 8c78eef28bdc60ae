// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/tally.h"

#include <algorithm>
#include <utility>

namespace setu::cli {

void Tally::OnSent(const RequestTrack& track, TimePoint now) {
  lag.Record(Milliseconds(now - track.planned));
  timeline.Sent(now - start_);
}

// The first delta may bring several tokens; they are one arrival, with no time between them.
void Tally::OnTokens(RequestTrack& track, TimePoint now, int tokens) {
  if (track.tokens == 0) {
    track.first = now;
    first_token.Record(Milliseconds(now - track.planned));
    timeline.FirstToken(now - start_, Milliseconds(now - track.planned));
  } else {
    const Duration gap = now - track.last;
    track.longest_gap = std::max(track.longest_gap, gap);
    between.Record(Milliseconds(gap) / tokens, tokens);
    timeline.Between(now - start_, Milliseconds(gap) / tokens, tokens);
  }
  timeline.Tokens(now - start_, tokens);
  track.last = now;
  track.tokens += tokens;
  generated_tokens += tokens;
}

bool Tally::Good(const RequestTrack& track) const {
  if (targets_.ttft_ms && Milliseconds(track.first - track.planned) > *targets_.ttft_ms) {
    return false;
  }
  if (!targets_.itl_ms || track.tokens < 2) return true;
  return Milliseconds(track.last - track.first) / static_cast<double>(track.tokens - 1) <=
         *targets_.itl_ms;
}

void Tally::OnEnd(const RequestTrack& track, const std::string& status, const std::string& error,
                  TimePoint now) {
  by_status[status].Record(Milliseconds(now - track.planned));
  if (track.tokens > 1) longest_gap.Record(Milliseconds(track.longest_gap));
  timeline.Ended(now - start_, status == kOk);
  if (status != kOk) {
    if (!error.empty()) first_error.emplace(status, error);
    return;
  }
  prompt_tokens += track.prompt_tokens;
  cached_tokens += track.cached_tokens;
  reusable_tokens += track.reusable_tokens;
  if (Good(track)) ++good;
}

void Tally::OnLastSent(Duration elapsed) {
  steady_ = {.seconds = std::chrono::duration<double>(elapsed).count(),
             .answered = answered(),
             .good = good,
             .tokens = generated_tokens};
}

std::optional<Tally::Steady> Tally::steady() const {
  if (steady_.seconds <= 0 || 2 * steady_.seconds < seconds) return {};
  return steady_;
}

void Tally::Merge(Tally other) {
  steady_.seconds += other.steady_.seconds;
  steady_.answered += other.steady_.answered;
  steady_.good += other.steady_.good;
  steady_.tokens += other.steady_.tokens;
  seconds += other.seconds;
  for (const auto& [status, latency] : other.by_status) by_status[status].Merge(latency);
  first_error.merge(other.first_error);
  good += other.good;
  generated_tokens += other.generated_tokens;
  prompt_tokens += other.prompt_tokens;
  cached_tokens += other.cached_tokens;
  reusable_tokens += other.reusable_tokens;
  first_token.Merge(other.first_token);
  between.Merge(other.between);
  longest_gap.Merge(other.longest_gap);
  lag.Merge(other.lag);
  timeline.Append(other.timeline);
}

int64_t Tally::ended() const {
  int64_t count = 0;
  for (const auto& [status, latency] : by_status) count += latency.count();
  return count;
}

int64_t Tally::answered() const {
  const auto ok = by_status.find(kOk);
  return ok == by_status.end() ? 0 : ok->second.count();
}

bool Tally::ok() const {
  return answered() > 0 && std::all_of(by_status.begin(), by_status.end(), [](const auto& ended) {
           return ended.first == kOk || ended.first == kCancelledByPlan ||
                  ended.first == "RESOURCE_EXHAUSTED";
         });
}

}  // namespace setu::cli
