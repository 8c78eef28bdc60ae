// SPDX-License-Identifier: Apache-2.0
#include "common/config/program.h"

#include <string>

#include "common/base/mapped_pages.h"

namespace setu::config {

int RunProgram(Options& options, int argc, const char* const* argv, Logger& logger,
               const std::function<absl::Status()>& serve) {
  EndOnUnreadablePages();
  const auto outcome = options.Parse(argc, argv, ProcessEnvironment(), logger);
  if (outcome.ok() && *outcome == Options::Outcome::kHelpShown) return 0;
  const absl::Status status = outcome.ok() ? serve() : outcome.status();
  if (!status.ok()) logger.Error(std::string(status.message()));
  return status.ok() ? 0 : 1;
}

}  // namespace setu::config
