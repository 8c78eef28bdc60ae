// SPDX-License-Identifier: Apache-2.0
#include "services/cli/bench_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace setu::cli {
namespace {

std::string Row(const char* name, const Percentiles& p) {
  return absl::StrFormat("%-12s %9.2f %9.2f %9.2f %9.2f %9.2f\n", name, p.mean, p.p50, p.p90, p.p99,
                         p.max);
}

nlohmann::ordered_json ToJson(const Percentiles& p) {
  return {{"mean_ms", p.mean},
          {"p50_ms", p.p50},
          {"p90_ms", p.p90},
          {"p99_ms", p.p99},
          {"max_ms", p.max}};
}

}  // namespace

Percentiles PercentilesOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
    return values[std::max<size_t>(rank, 1) - 1];
  };
  double sum = 0;
  for (double v : values) sum += v;
  return {.mean = sum / static_cast<double>(values.size()),
          .p50 = at(0.5),
          .p90 = at(0.9),
          .p99 = at(0.99),
          .max = values.back()};
}

BenchReport Summarise(const std::vector<BenchSample>& samples, Duration wall) {
  BenchReport report{.seconds = std::chrono::duration<double>(wall).count()};
  std::vector<double> first, between, total;
  for (const BenchSample& sample : samples) {
    ++report.by_status[sample.status];
    if (sample.status != "OK") {
      report.first_error.emplace(sample.status, sample.error);
      continue;
    }
    report.prompt_tokens += sample.prompt_tokens;
    report.generated_tokens += sample.generated_tokens;
    first.push_back(Milliseconds(sample.first_token));
    total.push_back(Milliseconds(sample.total));
    for (Duration d : sample.between) between.push_back(Milliseconds(d));
  }
  report.first_token = PercentilesOf(std::move(first));
  report.between = PercentilesOf(std::move(between));
  report.total = PercentilesOf(std::move(total));
  return report;
}

bool BenchReport::ok() const {
  return by_status.contains("OK") && std::all_of(by_status.begin(), by_status.end(), [](auto& s) {
           return s.first == "OK" || s.first == "RESOURCE_EXHAUSTED";
         });
}

std::string BenchReport::Text() const {
  std::string out = absl::StrFormat("%.2f s", seconds);
  for (const auto& [status, count] : by_status) absl::StrAppend(&out, ", ", count, " ", status);
  for (const auto& [status, error] : first_error) absl::StrAppend(&out, "\n", status, ": ", error);
  if (!by_status.contains("OK"))
    return out + "\nno request ended OK: there is nothing to measure\n";
  absl::StrAppendFormat(&out, "\ngenerated %d tokens (%.1f/s), prompts %d tokens (%.1f/s)\n",
                        generated_tokens, generated_per_second(), prompt_tokens,
                        seconds > 0 ? prompt_tokens / seconds : 0.0);
  absl::StrAppendFormat(&out, "%-12s %9s %9s %9s %9s %9s\n", "ms", "mean", "p50", "p90", "p99",
                        "max");
  absl::StrAppend(&out, Row("TTFT", first_token), Row("ITL", between), Row("end to end", total));
  return out +
         "TTFT: to the first token; ITL: from one token to the next; end to end: to the last\n";
}

std::string BenchReport::Json() const {
  nlohmann::ordered_json json = {{"seconds", seconds},
                                 {"requests", by_status},
                                 {"prompt_tokens", prompt_tokens},
                                 {"generated_tokens", generated_tokens},
                                 {"generated_tokens_per_second", generated_per_second()},
                                 {"time_to_first_token", ToJson(first_token)},
                                 {"inter_token_latency", ToJson(between)},
                                 {"end_to_end", ToJson(total)}};
  return json.dump(2) + "\n";
}

}  // namespace setu::cli
