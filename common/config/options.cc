// SPDX-License-Identifier: Apache-2.0
#include "common/config/options.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/config/entry.h"
#include "common/config/help.h"
#include "common/config/known_names.h"
#include "common/config/nearest.h"
#include "common/config/sources.h"

namespace setu::config {
namespace {

constexpr char kConfig[] = "config";

// How a place spells the name of an option: --help's way, or the environment's.
using Spelling = std::string (*)(const Entry&);

std::string Name(const Entry& entry) { return entry.name(); }
std::string Variable(const Entry& entry) { return entry.Variable(); }

// A name that stands behind `where` with dashes is to be typed with them.
std::string AsTyped(const Assignment& assignment, const std::string& name) {
  return absl::StartsWith(assignment.where, "-") ? absl::StrCat("--", name) : name;
}

}  // namespace

struct Options::State {
  Page page;
  std::vector<std::string>* positional = nullptr;
  std::string config_path;

  Entry* Find(const std::string& name, Spelling spelling) {
    auto entry = std::find_if(page.entries.begin(), page.entries.end(),
                              [&](const Entry& e) { return spelling(e) == name; });
    return entry == page.entries.end() ? nullptr : &*entry;
  }
  absl::Status Unknown(const Assignment& assignment, Spelling spelling) const;
  absl::Status Apply(const std::vector<Assignment>& assignments, Spelling spelling);
  absl::Status ApplyFile(const std::string& path);
  absl::Status TakePositional(std::vector<std::string> values);
  absl::Status CheckRequired() const;
};

absl::Status Options::State::Unknown(const Assignment& assignment, Spelling spelling) const {
  std::vector<std::string> names;
  for (const Entry& entry : page.entries) names.push_back(spelling(entry));
  const std::string nearest = Nearest(assignment.name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      assignment.where, " is no option of ", page.program,
      nearest.empty() ? "" : absl::StrCat("; the nearest is ", AsTyped(assignment, nearest)),
      " (--help lists all)"));
}

// One source. Where it repeats an option, a weaker source's texts are forgotten.
absl::Status Options::State::Apply(const std::vector<Assignment>& assignments, Spelling spelling) {
  std::set<Entry*> begun;
  for (const Assignment& assignment : assignments) {
    Entry* entry = Find(assignment.name, spelling);
    if (entry == nullptr) return Unknown(assignment, spelling);
    if (!entry->repeats()) {
      SETU_RETURN_IF_ERROR(entry->Set(absl::StrJoin(assignment.values, ","), assignment.where));
      continue;
    }
    if (begun.insert(entry).second) entry->Clear();
    for (const std::string& value : assignment.values) {
      SETU_RETURN_IF_ERROR(entry->Set(value, assignment.where));
    }
  }
  return absl::OkStatus();
}

absl::Status Options::State::ApplyFile(const std::string& path) {
  SETU_ASSIGN_OR_RETURN(const auto in_file, ReadYamlFile(path));
  for (const Assignment& assignment : in_file) {
    if (assignment.name != kConfig) continue;
    return absl::InvalidArgumentError(absl::StrCat(assignment.where, " is no option of a file"));
  }
  return Apply(in_file, &Name);
}

absl::Status Options::State::TakePositional(std::vector<std::string> values) {
  if (values.empty()) return absl::OkStatus();
  if (positional == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", values[0], "' is no option: ", page.program, " takes --options only"));
  }
  *positional = std::move(values);
  return absl::OkStatus();
}

absl::Status Options::State::CheckRequired() const {
  for (const Entry& entry : page.entries) {
    if (!entry.missing()) continue;
    return absl::InvalidArgumentError(absl::StrCat("--", entry.name(), " is required (or ",
                                                   entry.Variable(), ", or ", entry.name(),
                                                   " in the --config file)"));
  }
  return absl::OkStatus();
}

Options::Options(std::string program, std::string purpose, std::vector<std::string> examples)
    : state_(std::make_unique<State>()) {
  state_->page.program = std::move(program);
  state_->page.purpose = std::move(purpose);
  state_->page.examples = std::move(examples);
  Add(kConfig, &state_->config_path, "YAML file with options, name: value");
}

Options::~Options() = default;

Option& Options::AddEntry(std::string name, Value value, std::string help) {
  return state_->page.entries.emplace_back(std::move(name), std::move(value), std::move(help));
}

Option& Options::Add(std::string name, std::string* target, std::string help) {
  return AddEntry(std::move(name), TextValue(target), std::move(help));
}
Option& Options::Add(std::string name, std::optional<std::string>* target, std::string help) {
  return AddEntry(std::move(name), TextValue(target), std::move(help));
}
Option& Options::Add(std::string name, std::vector<std::string>* target, std::string help) {
  return AddEntry(std::move(name), ListValue(target), std::move(help));
}
Option& Options::AddRepeated(std::string name, std::vector<std::string>* target, std::string help) {
  return AddEntry(std::move(name), RepeatedValue(target), std::move(help));
}
Option& Options::Add(std::string name, int32_t* target, std::string help) {
  return AddEntry(std::move(name), NumberValue(target), std::move(help));
}
Option& Options::Add(std::string name, int64_t* target, std::string help) {
  return AddEntry(std::move(name), NumberValue(target), std::move(help));
}
Option& Options::Add(std::string name, double* target, std::string help) {
  return AddEntry(std::move(name), NumberValue(target), std::move(help));
}
Option& Options::Add(std::string name, std::optional<int64_t>* target, std::string help) {
  return AddEntry(std::move(name), NumberValue(target), std::move(help));
}
Option& Options::Add(std::string name, std::optional<double>* target, std::string help) {
  return AddEntry(std::move(name), NumberValue(target), std::move(help));
}
Option& Options::Add(std::string name, bool* target, std::string help) {
  return AddEntry(std::move(name), SwitchValue(target), std::move(help));
}
Option& Options::Add(std::string name, Duration* target, std::string help) {
  return AddEntry(std::move(name), DurationValue(target), std::move(help));
}
Option& Options::AddListen(std::string name, std::string* target, std::string help) {
  return AddEntry(std::move(name), ListenValue(target), std::move(help));
}
Option& Options::AddAddress(std::string name, std::string* target, std::string help) {
  return AddEntry(std::move(name), AddressValue(target), std::move(help));
}
Option& Options::AddAddresses(std::string name, std::vector<std::string>* target,
                              std::string help) {
  return AddEntry(std::move(name), AddressesValue(target), std::move(help));
}
Option& Options::AddBytes(std::string name, int64_t* target, std::string help) {
  return AddEntry(std::move(name), BytesValue(target), std::move(help));
}

void Options::AddPositional(std::string name, std::vector<std::string>* target, std::string help) {
  state_->positional = target;
  state_->page.positional = absl::AsciiStrToUpper(name);
  state_->page.positional_help = std::move(help);
}

absl::StatusOr<Options::Outcome> Options::Parse(int argc, const char* const* argv,
                                                const std::vector<std::string>& environment,
                                                Logger& logger) {
  auto kind = [this](const std::string& name) {
    const Entry* entry = state_->Find(name, &Name);
    if (entry == nullptr) return FlagKind::kUnknown;
    return entry->is_switch() ? FlagKind::kSwitch : FlagKind::kValue;
  };
  SETU_ASSIGN_OR_RETURN(CommandLine line, ReadCommandLine(argc, argv, kind));
  if (line.help) {
    std::fputs(Help().c_str(), stdout);
    return Outcome::kHelpShown;
  }
  std::vector<Assignment> variables = ReadEnvironment(environment, logger);
  std::erase_if(variables, [this](const Assignment& assignment) {
    return state_->Find(assignment.name, &Variable) == nullptr && IsKnownVariable(assignment.name);
  });
  // Twice: once for the file's own name, and again over what the file says.
  const auto apply_stronger = [&] {
    SETU_RETURN_IF_ERROR(state_->Apply(variables, &Variable));
    return state_->Apply(line.assignments, &Name);
  };
  SETU_RETURN_IF_ERROR(apply_stronger());
  if (!state_->config_path.empty()) {
    SETU_RETURN_IF_ERROR(state_->ApplyFile(state_->config_path));
    SETU_RETURN_IF_ERROR(apply_stronger());
  }
  SETU_RETURN_IF_ERROR(state_->TakePositional(std::move(line.positional)));
  SETU_RETURN_IF_ERROR(state_->CheckRequired());
  return Outcome::kRun;
}

std::string Options::Help() const { return Render(state_->page); }

}  // namespace setu::config
