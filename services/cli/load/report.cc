// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "services/cli/load/comparison.h"
#include "services/cli/load/figures.h"

namespace setu::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Row(const char* name, const LatencyHistogram& h) {
  if (h.count() == 0) return "";
  return absl::StrFormat("%-12s %9.2f %9.2f %9.2f %9.2f %9.2f\n", name, h.mean(), h.Percentile(0.5),
                         h.Percentile(0.9), h.Percentile(0.99), h.most());
}

double Percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string Statuses(const Tally& tally) {
  std::string out;
  for (const auto& [status, latency] : tally.by_status) {
    absl::StrAppend(&out, ", ", latency.count(), " ", status);
  }
  absl::StrAppend(&out, "\n");
  for (const auto& [status, error] : tally.first_error) {
    absl::StrAppend(&out, status, ": ", error, "\n");
  }
  return out;
}

std::string Tokens(const Tally& tally) {
  std::string out = absl::StrFormat("generated %d tokens (%.1f/s), prompts %d tokens (%.1f/s)",
                                    tally.generated_tokens, tally.PerSecond(tally.generated_tokens),
                                    tally.prompt_tokens, tally.PerSecond(tally.prompt_tokens));
  if (const auto steady = tally.steady()) {
    absl::StrAppendFormat(&out, ", %.1f/s generated while requests came",
                          steady->PerSecond(steady->tokens));
  }
  if (tally.cached_tokens > 0) absl::StrAppendFormat(&out, ", %d cached", tally.cached_tokens);
  if (tally.reusable_tokens > 0) {
    absl::StrAppendFormat(&out, " (%.1f %% of %d reusable)",
                          Percent(tally.cached_tokens, tally.reusable_tokens),
                          tally.reusable_tokens);
  }
  return out + "\n";
}

std::string Latencies(const Tally& tally) {
  std::string out =
      absl::StrFormat("%-12s %9s %9s %9s %9s %9s\n", "ms", "mean", "p50", "p90", "p99", "max");
  absl::StrAppend(&out, Row("TTFT", tally.first_token), Row("ITL", tally.between),
                  Row("longest gap", tally.longest_gap));
  for (const auto& [status, latency] : tally.by_status) {
    absl::StrAppend(&out, Row(status == kOk ? "end to end" : status.c_str(), latency));
  }
  return out;
}

std::string Goodput(const Tally& tally, const Targets& targets) {
  if (!targets.ttft_ms && !targets.itl_ms) return "";
  std::string out =
      absl::StrFormat("good: %d (%.2f/s, %.1f %% of all)", tally.good, tally.PerSecond(tally.good),
                      Percent(tally.good, tally.ended()));
  if (targets.ttft_ms) absl::StrAppendFormat(&out, ", TTFT <= %g ms", *targets.ttft_ms);
  if (targets.itl_ms) absl::StrAppendFormat(&out, ", ITL <= %g ms", *targets.itl_ms);
  return out + "\n";
}

// A generator that sends late measures itself.
std::string Lag(const Tally& tally) {
  constexpr double kNoticeMs = 5;
  if (tally.lag.Percentile(0.99) < kNoticeMs) return "";
  return absl::StrFormat("this program sent late: p99 %.1f ms, most %.1f ms\n",
                         tally.lag.Percentile(0.99), tally.lag.most());
}

std::string TextOf(const WorkloadResult& result) {
  const Tally tally = result.Merged();
  std::string out = absl::StrFormat("%.2f s", tally.seconds);
  if (result.rounds.size() > 1) absl::StrAppend(&out, " in ", result.rounds.size(), " rounds");
  absl::StrAppend(&out, Statuses(tally));
  if (!tally.by_status.contains(kOk)) {
    absl::StrAppend(&out, "no request ended OK: there is nothing to measure\n");
  }
  if (tally.generated_tokens == 0) return out;
  return absl::StrCat(out, Tokens(tally), Latencies(tally), Goodput(tally, result.targets),
                      Lag(tally));
}

Json JsonOf(const LatencyHistogram& h) {
  return {{"count", h.count()},           {"mean_ms", h.mean()},
          {"p50_ms", h.Percentile(0.5)},  {"p90_ms", h.Percentile(0.9)},
          {"p99_ms", h.Percentile(0.99)}, {"max_ms", h.most()}};
}

Json JsonOf(const Second& second) {
  Json json = {{"second", second.second},
               {"sent", second.sent},
               {"ok", second.ok},
               {"failed", second.failed},
               {"tokens", second.tokens}};
  const auto add = [&](const char* name, const std::optional<Middle>& middle) {
    if (middle) json[name] = {{"p50_ms", middle->p50_ms}, {"p99_ms", middle->p99_ms}};
  };
  add("time_to_first_token", second.first_token);
  add("inter_token_latency", second.between);
  return json;
}

Json JsonOf(const WorkloadResult& result) {
  Tally tally = result.Merged();
  Json json = {{"name", result.name},
               {"rounds", result.rounds.size()},
               {"seconds", tally.seconds},
               {"steady_seconds", tally.steady() ? tally.steady()->seconds : 0},
               {"requests", Json::object()},
               {"good", tally.good},
               {"generated_tokens", tally.generated_tokens},
               {"generated_tokens_per_second", tally.PerSecond(tally.generated_tokens)},
               {"prompt_tokens", tally.prompt_tokens},
               {"cached_tokens", tally.cached_tokens},
               {"reusable_tokens", tally.reusable_tokens},
               {"time_to_first_token", JsonOf(tally.first_token)},
               {"inter_token_latency", JsonOf(tally.between)},
               {"longest_gap", JsonOf(tally.longest_gap)},
               {"sent_late", JsonOf(tally.lag)},
               {"by_status", Json::object()},
               {"figures", RoundsOf(result.rounds)},
               {"timeline", Json::array()}};
  for (const auto& [status, latency] : tally.by_status) {
    json["requests"][status] = latency.count();
    json["by_status"][status] = JsonOf(latency);
  }
  for (const Second& second : tally.timeline.Seconds()) json["timeline"].push_back(JsonOf(second));
  return json;
}

}  // namespace

Tally WorkloadResult::Merged() const {
  Tally merged = rounds.front();
  for (size_t i = 1; i < rounds.size(); ++i) merged.Merge(rounds[i]);
  return merged;
}

bool LoadReport::ok() const {
  for (const SideResult& side : sides) {
    for (const WorkloadResult& workload : side.workloads) {
      if (!std::all_of(workload.rounds.begin(), workload.rounds.end(),
                       [](const Tally& tally) { return tally.ok(); })) {
        return false;
      }
    }
  }
  return true;
}

std::string LoadReport::Text() const {
  std::string out;
  for (const SideResult& side : sides) {
    if (sides.size() > 1) absl::StrAppend(&out, "== ", side.name, "\n");
    for (const WorkloadResult& workload : side.workloads) {
      if (side.workloads.size() > 1) absl::StrAppend(&out, workload.name, ": ");
      absl::StrAppend(&out, TextOf(workload));
    }
  }
  absl::StrAppend(
      &out,
      "TTFT: from its planned arrival to the first token; ITL: from one token to the "
      "next; longest gap: of each answer; end to end: from arrival to the last token\n");
  const std::vector<ComparedSide> compared = ComparedSides(*this);
  for (size_t i = 1; i < compared.size(); ++i) {
    absl::StrAppend(&out, "\n", ComparisonText(compared[0], compared[i]));
  }
  return out;
}

std::string LoadReport::Json() const {
  cli::Json json = {{"setu_bench", 1}, {"seed", seed}, {"sides", cli::Json::array()}};
  for (const SideResult& side : sides) {
    cli::Json workloads = cli::Json::array();
    for (const WorkloadResult& workload : side.workloads) workloads.push_back(JsonOf(workload));
    json["sides"].push_back(
        {{"name", side.name}, {"address", side.address}, {"workloads", std::move(workloads)}});
  }
  return json.dump(2, ' ', false, cli::Json::error_handler_t::replace) + "\n";
}

}  // namespace setu::cli
