// SPDX-License-Identifier: Apache-2.0
// What a run of `setu bench` measured, and how it is shown. Pure.
//
//   LoadReport report = {.seed = 1, .sides = {{"alone", address, {{"streams", {tally}}}}}};
//   report.Text(), report.Json(), HtmlPage(report)
#ifndef SETU_SERVICES_CLI_LOAD_REPORT_H_
#define SETU_SERVICES_CLI_LOAD_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "services/cli/load/tally.h"
#include "services/cli/load/workload.h"

namespace setu::cli {

struct WorkloadResult {
  std::string name;
  Targets targets;
  std::vector<Tally> rounds;  // at least one

  Tally Merged() const;  // all rounds as one
};

struct SideResult {
  std::string name;
  std::string address;
  std::vector<WorkloadResult> workloads;
};

struct LoadReport {
  int64_t seed = 0;
  std::vector<SideResult> sides;

  // Whether nothing failed, in any round.
  bool ok() const;
  std::string Text() const;
  std::string Json() const;
};

// A page that needs nothing else: tables, latencies over time and their distributions, throughput.
std::string HtmlPage(const LoadReport& report);  // html.cc

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_REPORT_H_
