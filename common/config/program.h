// SPDX-License-Identifier: Apache-2.0
// The main function of a service, once its options are declared.
//
//   return config::RunProgram(options, argc, argv, logger, [&] { return Serve(flags, logger); });
#ifndef SETU_COMMON_CONFIG_PROGRAM_H_
#define SETU_COMMON_CONFIG_PROGRAM_H_

#include <functional>

#include "absl/status/status.h"
#include "common/config/options.h"
#include "common/logging/logger.h"

namespace setu::config {

// Parses, with the process's environment, then serves unless help was shown. Returns the exit code:
// 0, or 1 after an error that was logged.
int RunProgram(Options& options, int argc, const char* const* argv, Logger& logger,
               const std::function<absl::Status()>& serve);

}  // namespace setu::config

#endif  // SETU_COMMON_CONFIG_PROGRAM_H_
