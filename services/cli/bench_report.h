// SPDX-License-Identifier: Apache-2.0
// What a bench run measured, and how it is shown. Pure.
#ifndef SETU_SERVICES_CLI_BENCH_REPORT_H_
#define SETU_SERVICES_CLI_BENCH_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace setu::cli {

// One request as the client saw it.
struct BenchSample {
  std::string status = "OK";      // canonical code
  std::string error;              // what it said, where that is not OK
  Duration first_token{};         // from send to first token (TTFT)
  std::vector<Duration> between;  // between deltas that carried tokens (ITL), per token
  Duration total{};
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
};

struct Percentiles {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;  // milliseconds
};

// Nearest-rank percentiles (the value at ceil(p * n)); all 0 for no values.
Percentiles PercentilesOf(std::vector<double> milliseconds);

struct BenchReport {
  double seconds = 0;
  std::map<std::string, int64_t> by_status;
  std::map<std::string, std::string> first_error;   // by status: what the first of them said
  int64_t prompt_tokens = 0, generated_tokens = 0;  // of requests that ended OK
  Percentiles first_token, between, total;

  double generated_per_second() const { return seconds > 0 ? generated_tokens / seconds : 0; }
  // Whether nothing failed: some ended OK, and a full queue refused the others.
  bool ok() const;
  std::string Text() const;
  std::string Json() const;
};

BenchReport Summarise(const std::vector<BenchSample>& samples, Duration wall);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_BENCH_REPORT_H_
