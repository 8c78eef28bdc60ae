// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "services/cli/load/plot.h"
#include "services/cli/load/report.h"

namespace setu::cli {
namespace {

constexpr char kHead[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>setu bench</title>\n"
    "<style>body{font:15px system-ui,sans-serif;margin:2em auto;max-width:1240px;padding:0 1em;"
    "color:#24292f;background:#fff}pre{overflow-x:auto;font-size:13px}"
    ".plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(540px,1fr));gap:1em}"
    "svg text{font:12px system-ui,sans-serif;fill:#57606a}svg .title{font-weight:600}"
    "svg "
    ".line{fill:none;stroke-width:1.6;stroke-linecap:round}.grid{stroke:#8c959f;stroke-opacity:.3}"
    "@media(prefers-color-scheme:dark){body{color:#c9d1d9;background:#0d1117}"
    "svg text{fill:#c9d1d9}}</style></head><body>\n";

// One side's workload, as all of its rounds together.
struct Shown {
  std::string side;
  Tally tally;
};

void Distribution(const std::string& title, const std::vector<Shown>& shown,
                  const std::function<LatencyHistogram(const Tally&)>& of, std::string& out) {
  Plot plot = {.title = title,
               .x_label = "ms",
               .y_label = "share of values up to there",
               .x_scale = Scale::kLog,
               .lines = {}};
  for (const Shown& one : shown) plot.lines.push_back({one.side, of(one.tally).Cumulative()});
  absl::StrAppend(&out, plot.Svg());
}

using OfSecond = std::function<double(const Second&)>;  // not finite: it has none

void OverTime(const std::string& title, const std::string& unit, Scale scale,
              std::vector<Shown>& shown,
              const std::vector<std::pair<std::string, OfSecond>>& values, std::string& out) {
  Plot plot = {.title = title, .x_label = "s", .y_label = unit, .y_scale = scale, .lines = {}};
  for (Shown& one : shown) {
    for (const auto& [name, of] : values) {
      Plot::Line& line = plot.lines.emplace_back(
          Plot::Line{shown.size() > 1 ? absl::StrCat(one.side, " ", name) : name, {}});
      int64_t last = 0;
      for (const Second& second : one.tally.timeline.Seconds()) {
        const auto at = static_cast<double>(second.second);
        // Another side's round lies between.
        if (second.second > last + 1) line.points.emplace_back(at, std::nan(""));
        line.points.emplace_back(at, of(second));
        last = second.second;
      }
    }
  }
  absl::StrAppend(&out, plot.Svg());
}

OfSecond OfMiddle(std::optional<Middle> Second::*which, double Middle::*value) {
  return [=](const Second& second) {
    return second.*which ? (*(second.*which)).*value : std::nan("");
  };
}

OfSecond OfCount(int64_t Second::*which) {
  return [=](const Second& second) { return static_cast<double>(second.*which); };
}

std::string Plots(std::vector<Shown> shown) {
  std::string out = "<div class=\"plots\">\n";
  OverTime("time to first token", "ms", Scale::kLog, shown,
           {{"p50", OfMiddle(&Second::first_token, &Middle::p50_ms)},
            {"p99", OfMiddle(&Second::first_token, &Middle::p99_ms)}},
           out);
  Distribution(
      "time to first token", shown, [](const Tally& t) { return t.first_token; }, out);
  OverTime("inter-token latency", "ms", Scale::kLog, shown,
           {{"p50", OfMiddle(&Second::between, &Middle::p50_ms)},
            {"p99", OfMiddle(&Second::between, &Middle::p99_ms)}},
           out);
  Distribution(
      "inter-token latency", shown, [](const Tally& t) { return t.between; }, out);
  OverTime("generated tokens", "per second", Scale::kLinear, shown,
           {{"tokens", OfCount(&Second::tokens)}}, out);
  OverTime("requests", "per second", Scale::kLinear, shown,
           {{"sent", OfCount(&Second::sent)},
            {"OK", OfCount(&Second::ok)},
            {"not OK", OfCount(&Second::failed)}},
           out);
  Distribution(
      "end to end", shown,
      [](const Tally& t) {
        const auto ok = t.by_status.find(kOk);
        return ok == t.by_status.end() ? LatencyHistogram() : ok->second;
      },
      out);
  return out + "</div>\n";
}

}  // namespace

std::string HtmlPage(const LoadReport& report) {
  std::string page =
      absl::StrCat(kHead, "<h1>setu bench</h1>\n<pre>", Escaped(report.Text()), "</pre>\n");
  size_t most = 0;
  for (const SideResult& side : report.sides) most = std::max(most, side.workloads.size());
  for (size_t w = 0; w < most; ++w) {
    std::vector<Shown> shown;
    std::string name;
    for (const SideResult& side : report.sides) {
      if (w >= side.workloads.size()) continue;
      shown.push_back({.side = side.name, .tally = side.workloads[w].Merged()});
      name = side.workloads[w].name;
    }
    absl::StrAppend(&page, "<h2>", Escaped(name), "</h2>\n", Plots(std::move(shown)));
  }
  return page + "</body></html>\n";
}

}  // namespace setu::cli
