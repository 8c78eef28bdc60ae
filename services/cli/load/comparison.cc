// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/comparison.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"

namespace setu::cli {
namespace {

using Json = nlohmann::json;

const char* Word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kUnknown:
      return "";
    case Verdict::kWithinNoise:
      return "within noise";
    case Verdict::kBetter:
      return "better";
    case Verdict::kWorse:
      return "worse";
  }
  return "";
}

std::string Line(const std::string& figure, const Difference& difference) {
  const std::string ratio =
      difference.ratio ? absl::StrFormat("%.3f", *difference.ratio) : std::string("-");
  std::string line =
      absl::StrFormat("%-20s %12.5g %12.5g %9s  %s", absl::StrReplaceAll(figure, {{"_", " "}}),
                      difference.base, difference.other, ratio, Word(difference.verdict));
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// Empty where it is not the object of arrays of numbers that a report has.
std::optional<FigureRounds> ParseFigures(const Json& json) {
  FigureRounds figures;
  if (!json.is_object()) return {};
  for (const auto& [name, values] : json.items()) {
    if (!values.is_array() || values.empty()) return {};
    for (const Json& value : values) {
      if (!value.is_number()) return {};
      figures[name].push_back(value.get<double>());
    }
  }
  return figures;
}

// The member of that name, or null where there is none.
const Json& Member(const Json& json, const char* name) {
  static const Json kNull;
  if (!json.is_object()) return kNull;
  const auto found = json.find(name);
  return found == json.end() ? kNull : *found;
}

std::optional<ComparedSide> ParseSide(const Json& json) {
  ComparedSide side;
  const Json& name = Member(json, "name");
  const Json& workloads = Member(json, "workloads");
  if (!name.is_string() || !workloads.is_array() || workloads.empty()) return {};
  side.name = name.get<std::string>();
  for (const Json& workload : workloads) {
    const Json& of = Member(workload, "name");
    auto figures = ParseFigures(Member(workload, "figures"));
    if (!of.is_string() || !figures) return {};
    side.workloads.push_back({of.get<std::string>(), *std::move(figures)});
  }
  return side;
}

}  // namespace

std::vector<ComparedSide> ComparedSides(const LoadReport& report) {
  std::vector<ComparedSide> sides;
  for (const SideResult& side : report.sides) {
    ComparedSide& compared = sides.emplace_back(ComparedSide{side.name, {}});
    for (const WorkloadResult& workload : side.workloads) {
      compared.workloads.push_back({workload.name, RoundsOf(workload.rounds)});
    }
  }
  return sides;
}

absl::StatusOr<std::vector<ComparedSide>> ParseReport(const std::string& path,
                                                      absl::string_view json) {
  const Json report = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  const absl::Status refused = absl::InvalidArgumentError(
      absl::StrCat(path, " is no report of setu bench; write one with --json"));
  const Json& sides = Member(report, "sides");
  if (!sides.is_array() || sides.empty()) return refused;
  std::vector<ComparedSide> parsed;
  for (const Json& side : sides) {
    auto one = ParseSide(side);
    if (!one) return refused;
    parsed.push_back(*std::move(one));
  }
  return parsed;
}

std::string ComparisonText(const ComparedSide& base, const ComparedSide& other) {
  std::string out;
  bool noise_known = false;
  for (size_t w = 0; w < std::min(base.workloads.size(), other.workloads.size()); ++w) {
    const ComparedWorkload& of = base.workloads[w];
    absl::StrAppendFormat(&out, "%-20s %12s %12s %9s\n", of.name, base.name, other.name, "ratio");
    for (const auto& [figure, rounds] : of.figures) {
      const auto found = other.workloads[w].figures.find(figure);
      if (found == other.workloads[w].figures.end()) continue;
      const Difference difference = Compare(figure, rounds, found->second);
      noise_known |= difference.verdict != Verdict::kUnknown;
      absl::StrAppend(&out, Line(figure, difference));
    }
  }
  return out + (noise_known
                    ? "medians of the rounds; within noise: the ranges of the rounds meet\n"
                    : "one round on a side says nothing of the noise; ask for --rounds 3\n");
}

}  // namespace setu::cli
