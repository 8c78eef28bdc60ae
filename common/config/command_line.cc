// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/config/sources.h"

namespace setu::config {

absl::StatusOr<CommandLine> ReadCommandLine(
    int argc, const char* const* argv, const std::function<FlagKind(const std::string&)>& kind) {
  CommandLine line;
  bool flags = true;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (!flags || argument == "-" || argument.empty() || argument[0] != '-') {
      line.positional.push_back(argument);
    } else if (argument == "--") {
      flags = false;
    } else if (argument == "--help" || argument == "-h") {
      line.help = true;
    } else {
      const size_t equals = argument.find('=');
      std::string where = argument.substr(0, equals);
      std::string name(absl::StripPrefix(where, "--"));
      const std::string positive(absl::StripPrefix(name, "no-"));
      if (equals != std::string::npos) {
        line.assignments.push_back({std::move(name), {argument.substr(equals + 1)}, where});
      } else if (kind(name) == FlagKind::kUnknown && kind(positive) == FlagKind::kSwitch) {
        line.assignments.push_back({positive, {"false"}, where});
      } else if (kind(name) == FlagKind::kValue && i + 1 == argc) {
        return absl::InvalidArgumentError(absl::StrCat(where, " needs a value behind it"));
      } else if (kind(name) == FlagKind::kValue) {
        line.assignments.push_back({std::move(name), {argv[++i]}, where});
      } else {
        line.assignments.push_back({std::move(name), {"true"}, where});
      }
    }
  }
  return line;
}

}  // namespace setu::config
