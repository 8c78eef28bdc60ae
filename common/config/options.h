// SPDX-License-Identifier: Apache-2.0
// A program's options from flags > environment SETU_* > --config file.yaml > defaults. Unknown keys
// are errors that name the nearest known one. `--help` prints every option with its default.
//
//   PrefillOptions o;
//   Options options("setu-prefill", "Computes prompts for a Setu cluster.",
//                   {"setu-prefill --model m.gguf --listen 127.0.0.1:50052"});
//   options.Add("model", &o.runner.model_path, "GGUF file").Required();
//   options.Add("chunk-tokens", &o.chunk_tokens, "tokens of one step").Range(16, 8192);
//   options.Add("drain-grace", &o.drain_grace, "how long SIGTERM waits");      // 60s, 5m
//   options.AddBytes("kv-memory", &o.kv_memory, "memory of the KV pool");      // 4GiB
//   switch (options.Parse(argc, argv, environ)) ...
#ifndef SETU_COMMON_CONFIG_OPTIONS_H_
#define SETU_COMMON_CONFIG_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/logging/logger.h"

namespace setu::config {

struct Value;

// One option as declared; the target keeps its default until parsed.
class Option {
 public:
  virtual ~Option() = default;
  virtual Option& Required() = 0;
  virtual Option& Range(double lowest, double highest) = 0;    // numbers, bytes, durations (s)
  virtual Option& OneOf(std::vector<std::string> values) = 0;  // strings
};

class Options {
 public:
  Options(std::string program, std::string purpose, std::vector<std::string> examples);
  ~Options();

  Option& Add(std::string name, std::string* target, std::string help);
  Option& Add(std::string name, std::optional<std::string>* target, std::string help);
  Option& Add(std::string name, std::vector<std::string>* target, std::string help);  // a,b,c
  // --x a --x b: each text is taken as it is, with its commas and spaces, also an empty one.
  Option& AddRepeated(std::string name, std::vector<std::string>* target, std::string help);
  Option& Add(std::string name, int32_t* target, std::string help);
  Option& Add(std::string name, int64_t* target, std::string help);
  Option& Add(std::string name, double* target, std::string help);
  Option& Add(std::string name, std::optional<int64_t>* target, std::string help);  // absent: unset
  Option& Add(std::string name, std::optional<double>* target, std::string help);
  Option& Add(std::string name, bool* target, std::string help);          // --x, --x=false, --no-x
  Option& Add(std::string name, Duration* target, std::string help);      // 250ms, 30s, 10m
  Option& AddBytes(std::string name, int64_t* target, std::string help);  // 512MiB, 4GiB
  // HOST:PORT, in a list each once. To listen on: port 0 is any free one. To reach: also
  // dns:///NAME:PORT, as gRPC has it.
  Option& AddListen(std::string name, std::string* target, std::string help);
  Option& AddAddress(std::string name, std::string* target, std::string help);
  Option& AddAddresses(std::string name, std::vector<std::string>* target, std::string help);
  // Arguments that are no flags; without this call any such argument is an error.
  void AddPositional(std::string name, std::vector<std::string>* target, std::string help);

  enum class Outcome { kRun, kHelpShown };
  // INVALID_ARGUMENT names key, source (flag, variable, file:line), value and what is allowed.
  // Variables that an orchestrator injects (SETU_*_SERVICE_*, SETU_*_PORT*=tcp://...) are ignored
  // with a log line, those of other Setu programs (known_names.h) without one.
  absl::StatusOr<Outcome> Parse(int argc, const char* const* argv,
                                const std::vector<std::string>& environment, Logger& logger);
  std::string Help() const;

 private:
  struct State;
  Option& AddEntry(std::string name, Value value, std::string help);
  std::unique_ptr<State> state_;
};

// The process's environment as "KEY=value" strings.
std::vector<std::string> ProcessEnvironment();

}  // namespace setu::config

#endif  // SETU_COMMON_CONFIG_OPTIONS_H_
