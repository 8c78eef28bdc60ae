// SPDX-License-Identifier: Apache-2.0
// The commands of `setu`. Each takes its arguments (without the program and command names), prints
// for people on stdout and stderr, and returns the process's exit code: 0 done, 1 failed, 2 usage.
#ifndef SETU_SERVICES_CLI_COMMANDS_H_
#define SETU_SERVICES_CLI_COMMANDS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/options.h"
#include "common/model/gguf.h"

namespace setu::cli {

using Arguments = std::vector<std::string>;

int RunUp(const Arguments& arguments);            // up.cc
int RunGenerate(const Arguments& arguments);      // generate.cc
int RunChat(const Arguments& arguments);          // chat.cc
int RunBench(const Arguments& arguments);         // bench.cc; `engine`, `compare`: the next two
int RunBenchEngine(const Arguments& arguments);   // bench_engine.cc
int RunBenchCompare(const Arguments& arguments);  // bench_compare.cc
int RunModel(const Arguments& arguments);         // model.cc: inspect, synth
int RunModelSynth(const Arguments& arguments);    // model_synth.cc
int RunToken(const Arguments& arguments);         // token.cc: new
int RunTop(const Arguments& arguments);           // top.cc
int RunDoctor(const Arguments& arguments);        // doctor.cc

// Parses `arguments` with the process's environment. Empty: go on; else the exit code (help was
// shown, or the error was printed).
std::optional<int> ParseOrExit(config::Options& options, const Arguments& arguments);

// The model file at `path`. Errors say where a model comes from, where that is the next step.
absl::StatusOr<std::unique_ptr<model::GgufFile>> OpenModel(const std::string& path);  // model.cc

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_COMMANDS_H_
