// SPDX-License-Identifier: Apache-2.0
// What one group of clients asks for: the flags of `setu bench` or a file of the same names
// (tests/bench/workloads/*.yaml), checked once. Pure but for the files of a trace and
// of a token that flags name.
//
//   WorkloadFlags flags;
//   AddWorkloadFlags(options, &flags);
//   ...options.Parse...
//   SETU_ASSIGN_OR_RETURN(Workload workload, MakeWorkload("load", flags));
#ifndef SETU_SERVICES_CLI_LOAD_WORKLOAD_H_
#define SETU_SERVICES_CLI_LOAD_WORKLOAD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/config/options.h"
#include "services/cli/load/arrivals.h"
#include "services/cli/load/lengths.h"

namespace setu::cli {

// As they are written; absent: the default that --help names.
struct WorkloadFlags {
  std::optional<std::string> arrivals, trace;
  std::optional<int64_t> concurrency, burst, requests;
  std::optional<double> rate, times_capacity;
  Duration duration{};
  std::string prompt_tokens = "128";
  std::string max_tokens = "64";
  int32_t prefixes = 0;
  int32_t prefix_tokens = 0;
  double cancel_share = 0;
  std::string cancel_after = "1";
  Duration deadline = std::chrono::minutes(10);
  std::optional<double> ttft_target_ms, itl_target_ms;
  std::optional<std::string> token_file;
};

void AddWorkloadFlags(config::Options& options, WorkloadFlags* flags);

// A good answer keeps each of them that is set.
struct Targets {
  std::optional<double> ttft_ms;  // to the first token
  std::optional<double> itl_ms;   // from one token to the next, in the mean of the answer
};

struct SharedPrefixes {
  int32_t count;
  int32_t tokens;  // of each
};

struct Cancels {
  double share;   // of the requests
  Lengths after;  // so many generated tokens
};

struct Workload {
  std::string name;
  ArrivalProcess arrivals;
  int64_t requests;   // at most
  Duration duration;  // none starts after it
  Lengths prompt_tokens, max_tokens;
  std::optional<SharedPrefixes> prefixes;  // in front of the prompt_tokens
  std::optional<Cancels> cancels;
  Duration deadline;  // of each request
  Targets targets;
  std::string token;  // of its clients; empty: none is sent
  // The rate is so many times what the cluster answers, which a closed loop finds out first.
  std::optional<double> times_capacity;
  int32_t knee_clients;  // of that loop
};

// INVALID_ARGUMENT names the flags that do not go together, or the value that is wrong.
absl::StatusOr<Workload> MakeWorkload(const std::string& name, const WorkloadFlags& flags);

// Of a workload with times_capacity: the closed loop that measures it, and its load at `rate`.
Workload KneeOf(Workload workload);
Workload AtRate(Workload workload, double rate);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_WORKLOAD_H_
