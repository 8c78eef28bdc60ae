// SPDX-License-Identifier: Apache-2.0
// What the clients of one workload saw in one round, counted while it happens in a bounded size.
// Pure: times are told. Latencies count from when a request was planned to be sent, so that one
// that a late generator sends late is not made faster by that.
//
//   Tally tally(workload.targets, start);
//   RequestTrack track{.planned = at};
//   tally.OnSent(track, clock.Now());
//   tally.OnTokens(track, clock.Now(), 1); ...
//   tally.OnEnd(track, "OK", "", clock.Now());
#ifndef SETU_SERVICES_CLI_LOAD_TALLY_H_
#define SETU_SERVICES_CLI_LOAD_TALLY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "services/cli/load/histogram.h"
#include "services/cli/load/timeline.h"
#include "services/cli/load/workload.h"

namespace setu::cli {

// How a request can end beside the canonical codes.
inline constexpr char kOk[] = "OK";
inline constexpr char kCancelledByPlan[] = "CANCELLED_BY_PLAN";
inline constexpr char kNotSent[] = "NOT_SENT";  // as many as the generator holds were open

// One request under way.
struct RequestTrack {
  TimePoint planned{};
  TimePoint first{}, last{};  // tokens
  Duration longest_gap{};     // between deltas
  int64_t tokens = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0;  // as the router tells at the end
  int64_t reusable_tokens = 0;                   // of a prefix that was sent before
};

class Tally {
 public:
  // `start`: of the timeline, the program's first load.
  Tally(const Targets& targets, TimePoint start) : targets_(targets), start_(start) {}

  void OnSent(const RequestTrack& track, TimePoint now);
  void OnTokens(RequestTrack& track, TimePoint now, int tokens);
  void OnEnd(const RequestTrack& track, const std::string& status, const std::string& error,
             TimePoint now);
  // So long after the round began, no other request will be sent; or the last one has ended.
  void OnLastSent(Duration elapsed);
  void OnOver(Duration elapsed) { seconds = std::chrono::duration<double>(elapsed).count(); }
  // As if both were one round; timelines stand one behind the other.
  void Merge(Tally other);

  int64_t ended() const;
  // Whether nothing failed: some ended OK, and others only as planned or because a queue was full.
  bool ok() const;
  int64_t answered() const;  // OK
  double PerSecond(int64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }

  double seconds = 0;
  // While requests came: at the end the clients become fewer, and rates say less of the cluster.
  struct Steady {
    double seconds = 0;
    int64_t answered = 0, good = 0, tokens = 0;
    double PerSecond(int64_t count) const { return static_cast<double>(count) / seconds; }
  };
  // Absent where that was less than half of the time.
  std::optional<Steady> steady() const;

  std::map<std::string, LatencyHistogram> by_status;  // to the end, whichever it was
  std::map<std::string, std::string> first_error;     // by status: what the first of them said
  int64_t good = 0;                                   // OK within the targets
  int64_t generated_tokens = 0;                       // all that came
  int64_t prompt_tokens = 0, cached_tokens = 0, reusable_tokens = 0;  // of requests that ended OK
  LatencyHistogram first_token, between, longest_gap;                 // of all that came
  LatencyHistogram lag;  // from when a request was planned to when it was sent
  Timeline timeline;

 private:
  bool Good(const RequestTrack& track) const;

  Steady steady_;
  Targets targets_;
  TimePoint start_;
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_TALLY_H_
