// SPDX-License-Identifier: Apache-2.0
// Two loads beside each other: sides of one run, or of two files that `--json` wrote. Pure.
#ifndef SETU_SERVICES_CLI_LOAD_COMPARISON_H_
#define SETU_SERVICES_CLI_LOAD_COMPARISON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/cli/load/figures.h"
#include "services/cli/load/report.h"

namespace setu::cli {

struct ComparedWorkload {
  std::string name;
  FigureRounds figures;
};

struct ComparedSide {
  std::string name;
  std::vector<ComparedWorkload> workloads;
};

std::vector<ComparedSide> ComparedSides(const LoadReport& report);

// The sides of a report that LoadReport::Json wrote; at least one. INVALID_ARGUMENT names the file
// and what it lacks.
absl::StatusOr<std::vector<ComparedSide>> ParseReport(const std::string& path,
                                                      absl::string_view json);

// A table for each workload that both have, in order: medians of the rounds, their ratio, and
// whether they differ by more than rounds do.
std::string ComparisonText(const ComparedSide& base, const ComparedSide& other);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_COMPARISON_H_
