// SPDX-License-Identifier: Apache-2.0
// The three places an option's value can come from, each read into the same plain list.
#ifndef SETU_COMMON_CONFIG_SOURCES_H_
#define SETU_COMMON_CONFIG_SOURCES_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/logging/logger.h"

namespace setu::config {

struct Assignment {
  std::string name;  // as this place spells it: chunk-tokens, in the environment SETU_CHUNK_TOKENS
  std::vector<std::string> values;  // one, or those of a file's list
  std::string where;  // as an error names it: --chunk-tokens, SETU_CHUNK_TOKENS, setu.yaml:3: ...
};

struct CommandLine {
  std::vector<Assignment> assignments;
  std::vector<std::string> positional;
  bool help = false;
};

enum class FlagKind { kUnknown, kValue, kSwitch };

// --name value, --name=value, --switch, --no-switch, --help, -h; `--` ends the flags. Unknown
// names come back as assignments too: the caller knows what to suggest.
absl::StatusOr<CommandLine> ReadCommandLine(
    int argc, const char* const* argv, const std::function<FlagKind(const std::string&)>& kind);

// Every SETU_* of "KEY=value" strings, whatever follows. What an orchestrator injects for a service
// whose name starts with setu is passed over with a log line; SETU_TEST_* belongs to tests.
std::vector<Assignment> ReadEnvironment(const std::vector<std::string>& environment,
                                        Logger& logger);

// A regular file with one YAML document: a map from names to values or lists of values, or nothing.
// At most 64 KiB of UTF-8. INVALID_ARGUMENT names the path, the line where there is one, and the
// reason.
absl::StatusOr<std::vector<Assignment>> ReadYamlFile(const std::string& path);
// The same of what was read from `path` already.
absl::StatusOr<std::vector<Assignment>> ParseYaml(const std::string& path, const std::string& text);

}  // namespace setu::config

#endif  // SETU_COMMON_CONFIG_SOURCES_H_
