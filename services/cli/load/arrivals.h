// SPDX-License-Identifier: Apache-2.0
// When the requests of a load come. Pure.
//
// In a closed loop each client asks again when it has its answer, so the cluster sets the pace. In
// an open one the times are planned before the first request is sent and wait for nobody; latencies
// count from them.
//
//   ArrivalTimes times(Poisson{.rate = 5}, seed);
//   while (std::optional<Duration> at = times.Next()) ...
#ifndef SETU_SERVICES_CLI_LOAD_ARRIVALS_H_
#define SETU_SERVICES_CLI_LOAD_ARRIVALS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "services/cli/load/draws.h"

namespace setu::cli {

struct Closed {
  int32_t clients;
};
// All clients ask at once, and again when the last of them has its answer: static batches.
struct Lockstep {
  int32_t clients;
};

struct Fixed {
  double rate;  // requests per second
};
struct Poisson {
  double rate;
};
// `size` requests at once, so far apart that `rate` is kept.
struct Bursts {
  double rate;
  int32_t size;
};
struct TracedRequest {
  Duration at;  // from the start; ascending
  int32_t prompt_tokens, max_tokens;
};
struct Trace {
  std::shared_ptr<const std::vector<TracedRequest>> requests;
};

using ArrivalProcess = std::variant<Closed, Lockstep, Fixed, Poisson, Bursts, Trace>;

bool IsOpen(const ArrivalProcess& process);

// A line for each request: seconds, prompt tokens and answer tokens, by blanks or commas; # begins
// a comment. INVALID_ARGUMENT names file, line and what is wrong there.
absl::StatusOr<Trace> ParseTrace(const std::string& path, absl::string_view text);

// Of an open process, ascending, from the start; a trace's end, the others do not.
class ArrivalTimes {
 public:
  ArrivalTimes(ArrivalProcess process, uint64_t seed);
  std::optional<Duration> Next();

 private:
  const ArrivalProcess process_;
  Draws draws_;
  uint64_t next_ = 0;
  double seconds_ = 0;  // of a Poisson process: when the last one came
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_ARRIVALS_H_
