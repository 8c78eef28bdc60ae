// SPDX-License-Identifier: Apache-2.0
// The commands of `setu`. Each takes its arguments (without the program and command names), prints
// for people on stdout and stderr, and returns the process's exit code: 0 done, 1 failed, 2 usage.
#ifndef SETU_SERVICES_CLI_COMMANDS_H_
#define SETU_SERVICES_CLI_COMMANDS_H_

#include <string>
#include <vector>

#include "common/config/options.h"

namespace setu::cli {

using Arguments = std::vector<std::string>;

int RunUp(const Arguments& arguments);        // up.cc
int RunGenerate(const Arguments& arguments);  // generate.cc
int RunChat(const Arguments& arguments);      // chat.cc
int RunBench(const Arguments& arguments);     // bench.cc
int RunModel(const Arguments& arguments);     // model.cc

// Parses `arguments` with the process's environment. Empty: go on; else the exit code (help was
// shown, or the error was printed).
std::optional<int> ParseOrExit(config::Options& options, const Arguments& arguments);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_COMMANDS_H_
