// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/figures.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace setu::cli {
namespace {

void AddLatencies(const std::string& name, const LatencyHistogram& latency, Figures& figures) {
  if (latency.count() == 0) return;
  figures[absl::StrCat(name, "_mean_ms")] = latency.mean();
  figures[absl::StrCat(name, "_p50_ms")] = latency.Percentile(0.5);
  figures[absl::StrCat(name, "_p90_ms")] = latency.Percentile(0.9);
  figures[absl::StrCat(name, "_p99_ms")] = latency.Percentile(0.99);
}

}  // namespace

Figures FiguresOf(const Tally& tally) {
  Figures figures;
  AddLatencies("ttft", tally.first_token, figures);
  AddLatencies("itl", tally.between, figures);
  AddLatencies("longest_gap", tally.longest_gap, figures);
  for (const auto& [status, latency] : tally.by_status) {
    if (status == kOk) AddLatencies("end_to_end", latency, figures);
    if (status == "RESOURCE_EXHAUSTED") AddLatencies("refused", latency, figures);
  }
  figures["ok_per_second"] = tally.PerSecond(tally.answered());
  figures["good_per_second"] = tally.PerSecond(tally.good);
  figures["tokens_per_second"] = tally.PerSecond(tally.generated_tokens);
  if (const auto steady = tally.steady()) {
    figures["steady_ok_per_second"] = steady->PerSecond(steady->answered);
    figures["steady_good_per_second"] = steady->PerSecond(steady->good);
    figures["steady_tokens_per_second"] = steady->PerSecond(steady->tokens);
  }
  const auto share = [&](const char* name, int64_t part, int64_t whole) {
    if (whole > 0) figures[name] = static_cast<double>(part) / static_cast<double>(whole);
  };
  share("cached_share", tally.cached_tokens, tally.prompt_tokens);
  share("reused_share", tally.cached_tokens, tally.reusable_tokens);
  return figures;
}

bool HigherIsBetter(const std::string& figure) { return !absl::EndsWith(figure, "_ms"); }

FigureRounds RoundsOf(const std::vector<Tally>& rounds) {
  FigureRounds figures;
  for (const Tally& round : rounds) {
    for (const auto& [name, value] : FiguresOf(round)) figures[name].push_back(value);
  }
  return figures;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

Difference Compare(const std::string& figure, const std::vector<double>& base,
                   const std::vector<double>& other) {
  Difference difference{.base = Median(base), .other = Median(other)};
  if (difference.base != 0) difference.ratio = difference.other / difference.base;
  if (base.size() < 2 || other.size() < 2) return difference;
  const auto [base_low, base_high] = std::minmax_element(base.begin(), base.end());
  const auto [other_low, other_high] = std::minmax_element(other.begin(), other.end());
  if (*other_low <= *base_high && *base_low <= *other_high) {
    difference.verdict = Verdict::kWithinNoise;
  } else {
    const bool higher = *other_low > *base_high;
    difference.verdict = higher == HigherIsBetter(figure) ? Verdict::kBetter : Verdict::kWorse;
  }
  return difference;
}

}  // namespace setu::cli
