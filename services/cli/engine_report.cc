// SPDX-License-Identifier: Apache-2.0
#include "services/cli/engine_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/roofline/verdict.h"

namespace setu::cli {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMiB = 1024.0 * 1024.0;

double LeastSeconds(const roofline::StepWork& work, const roofline::Peaks& peaks) {
  return std::max(work.bytes() / peaks.bytes_per_second,
                  work.operations() / peaks.operations_per_second);
}

const char* LimitName(const EngineRow& row) { return Name(roofline::LimitOf(row.terms)); }

}  // namespace

void EngineReport::Raise() {
  for (const EngineRow& row : rows) peaks.Raise(row.work, row.best());
}

double EngineReport::RoofShare(const EngineRow& row) const {
  return LeastSeconds(row.work, peaks) / row.median();
}

double EngineReport::RoofShareBeside(const EngineRow& row) const {
  std::vector<double> shares;
  for (const EngineRound& round : row.rounds) {
    roofline::Peaks beside = peaks;
    beside.bytes_per_second = round.read_bytes_per_second;
    // What was faster than reading is the roof.
    shares.push_back(std::min(1.0, LeastSeconds(row.work, beside) / round.seconds));
  }
  std::ranges::sort(shares);
  return shares[shares.size() / 2];
}

std::string EngineReport::Head() const {
  std::string out =
      absl::StrFormat("machine  %s, %d cores, L3 %.0f MiB, huge pages %s, load %.1f\n", cpu, cores,
                      peaks.l3_bytes / kMiB, huge_pages, load);
  absl::StrAppendFormat(&out, "engine   %s, %s, %d threads\n", numerics, isa, threads);
  absl::StrAppendFormat(&out,
                        "model    %s, %s, %.1f MiB packed, %.1f MiB of memory in huge pages\n",
                        model, quantization, weight_bytes / kMiB, huge_page_bytes / kMiB);
  absl::StrAppendFormat(
      &out, "peaks    %.1f GB/s%s, %.1f GFLOP/s, ridge %.1f FLOP per byte\n",
      peaks.bytes_per_second / kGiga,
      peaks.cache_resident() ? " (of the cache: the weights are less than 2 L3)" : "",
      peaks.operations_per_second / kGiga, peaks.ridge());
  return out;
}

std::string EngineReport::Text() const {
  std::string out = absl::StrFormat("%-13s %9s %9s %9s %8s %6s %9s %6s %6s %6s %9s  %s\n", "",
                                    "tokens/s", "best", "pass ms", "GB/s", "peak", "GFLOP/s",
                                    "peak", "roof", "beside", "predicted", "limit");
  for (const EngineRow& row : rows) {
    absl::StrAppendFormat(
        &out, "%-13s %9.1f %9.1f %9.2f %8.2f %5.1f%% %9.1f %5.1f%% %5.1f%% %5.1f%% %9.1f  %s\n",
        row.name, row.tokens_per_second(), row.tokens / row.best(), 1e3 * row.median(),
        row.bandwidth() / kGiga, 100 * row.bandwidth() / peaks.bytes_per_second,
        row.arithmetic() / kGiga, 100 * row.arithmetic() / peaks.operations_per_second,
        100 * RoofShare(row), 100 * RoofShareBeside(row), row.tokens / row.terms.seconds(),
        LimitName(row));
  }
  return out;
}

std::string EngineReport::Csv() const {
  std::string out =
      "numerics,isa,threads,quantization,case,tokens_per_s,best_tokens_per_s,pass_ms,bytes,"
      "GB_per_s,bandwidth_share,operations,GFLOP_per_s,arithmetic_share,roof_share,"
      "roof_share_beside,predicted_tokens_per_s,limit\n";
  for (const EngineRow& row : rows) {
    absl::StrAppendFormat(&out, "%s,%s,%d,%s,%s,%.2f,%.2f,%.4f,%.0f,%.3f,%.4f,%.0f,%.2f,%.4f,%.4f,",
                          numerics, isa, threads, quantization, row.name, row.tokens_per_second(),
                          row.tokens / row.best(), 1e3 * row.median(), row.work.bytes(),
                          row.bandwidth() / kGiga, row.bandwidth() / peaks.bytes_per_second,
                          row.work.operations(), row.arithmetic() / kGiga,
                          row.arithmetic() / peaks.operations_per_second, RoofShare(row));
    absl::StrAppendFormat(&out, "%.4f,%.2f,%s\n", RoofShareBeside(row),
                          row.tokens / row.terms.seconds(), LimitName(row));
  }
  return out;
}

std::string EngineReport::Json() const {
  nlohmann::ordered_json json = {
      {"machine",
       {{"cpu", cpu},
        {"cores", cores},
        {"l3_bytes", peaks.l3_bytes},
        {"huge_pages", huge_pages},
        {"load", load}}},
      {"engine",
       {{"numerics", numerics},
        {"isa", isa},
        {"threads", threads},
        {"huge_page_bytes", huge_page_bytes}}},
      {"model", {{"name", model}, {"quantization", quantization}, {"weight_bytes", weight_bytes}}},
      {"peaks",
       {{"bytes_per_second", peaks.bytes_per_second},
        {"operations_per_second", peaks.operations_per_second},
        {"ridge", peaks.ridge()},
        {"cache_resident", peaks.cache_resident()}}},
      {"context", context},
      {"cases", nlohmann::ordered_json::array()}};
  for (const EngineRow& row : rows) {
    std::vector<double> seconds, reads;
    for (const EngineRound& round : row.rounds) {
      seconds.push_back(round.seconds);
      reads.push_back(round.read_bytes_per_second);
    }
    json["cases"].push_back({{"name", row.name},
                             {"tokens_per_second", row.tokens_per_second()},
                             {"best_tokens_per_second", row.tokens / row.best()},
                             {"pass_seconds", seconds},
                             {"read_bytes_per_second", reads},
                             {"bytes", row.work.bytes()},
                             {"operations", row.work.operations()},
                             {"bandwidth_share", row.bandwidth() / peaks.bytes_per_second},
                             {"arithmetic_share", row.arithmetic() / peaks.operations_per_second},
                             {"roof_share", RoofShare(row)},
                             {"roof_share_beside", RoofShareBeside(row)},
                             {"predicted_tokens_per_second", row.tokens / row.terms.seconds()},
                             {"predicted_seconds",
                              {{"memory", row.terms.memory},
                               {"compute", row.terms.compute},
                               {"stall", row.terms.stall},
                               {"fixed", row.terms.fixed}}},
                             {"limit", LimitName(row)}});
  }
  return json.dump(2) + "\n";
}

}  // namespace setu::cli
