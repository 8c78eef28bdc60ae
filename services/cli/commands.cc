// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands.h"

#include <cstdio>

#include "common/logging/logger.h"

namespace setu::cli {

std::optional<int> ParseOrExit(config::Options& options, const Arguments& arguments) {
  std::vector<const char*> argv = {"setu"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  StderrLogger logger("setu");
  const auto outcome = options.Parse(static_cast<int>(argv.size()), argv.data(),
                                     config::ProcessEnvironment(), logger);
  if (!outcome.ok()) {
    std::fprintf(stderr, "%s\n", std::string(outcome.status().message()).c_str());
    return 2;
  }
  if (*outcome == config::Options::Outcome::kHelpShown) return 0;
  return std::nullopt;
}

}  // namespace setu::cli
