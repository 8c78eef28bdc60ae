// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "services/cli/engine_report.h"

namespace setu::cli {
namespace {

constexpr double kGiga = 1e9;
constexpr double kLeft = 76, kTop = 56, kWidth = 700, kHeight = 380;  // of the plot's field
constexpr double kImageWidth = 830, kImageHeight = 500;

// Colours that hold on white and on black; a viewer that knows prefers-color-scheme sharpens them.
constexpr char kStyle[] =
    "<style>text{font:13px system-ui,sans-serif;fill:#57606a}.title{font-size:16px;font-weight:600}"
    ".grid{stroke:#8c959f;stroke-opacity:.3}.roof{stroke:#2f81f7;stroke-width:2.5;fill:none}"
    ".ridge{stroke:#2f81f7;stroke-dasharray:4 4}.point{fill:#e16f24}.drop{stroke:#e16f24;"
    "stroke-opacity:.45;stroke-dasharray:2 3}.number{font-size:11px;font-weight:600;fill:#fff}"
    "@media(prefers-color-scheme:dark){text:not(.number){fill:#c9d1d9}}</style>\n";

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// A logarithmic axis over whole decades.
struct Axis {
  double low, high;   // powers of ten
  double begin, end;  // pixels
  double At(double value) const {
    return begin + (std::log10(value) - low) / (high - low) * (end - begin);
  }
};

Axis AxisOver(double least, double most, double begin, double end) {
  return {std::floor(std::log10(least)), std::ceil(std::log10(most) + 1e-9), begin, end};
}

std::string Line(const char* kind, double x1, double y1, double x2, double y2) {
  return absl::StrFormat("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                         kind, x1, y1, x2, y2);
}

std::string Text(double x, double y, const char* anchor, const std::string& text,
                 const std::string& more = "") {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x, y,
                         anchor, more, Escaped(text));
}

std::string Power(double exponent) { return absl::StrFormat("%g", std::pow(10, exponent)); }

std::string Grid(const Axis& x, const Axis& y) {
  std::string out;
  for (double e = x.low; e <= x.high; ++e) {
    const double at = x.At(std::pow(10, e));
    absl::StrAppend(&out, Line("grid", at, y.begin, at, y.end),
                    Text(at, y.begin + 18, "middle", Power(e)));
  }
  for (double e = y.low; e <= y.high; ++e) {
    const double at = y.At(std::pow(10, e));
    absl::StrAppend(&out, Line("grid", x.begin, at, x.end, at),
                    Text(x.begin - 8, at + 4, "end", Power(e)));
  }
  return out;
}

std::string Roofs(const roofline::Peaks& peaks, const Axis& x, const Axis& y) {
  const double flat = peaks.operations_per_second / kGiga, slope = peaks.bytes_per_second / kGiga;
  const double ridge = peaks.ridge();
  // From where the slope enters the field, at its left side or at its bottom.
  const double first = std::max(std::pow(10, x.low), std::pow(10, y.low) / slope);
  std::string out =
      absl::StrFormat("<polyline class=\"roof\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>\n",
                      x.At(first), y.At(first * slope), x.At(ridge), y.At(flat), x.end, y.At(flat));
  absl::StrAppend(
      &out, Line("ridge", x.At(ridge), y.At(flat), x.At(ridge), y.begin),
      Text(x.At(ridge) - 6, y.begin - 8, "end", absl::StrFormat("ridge %.0f FLOP per byte", ridge)),
      Text(x.end - 4, y.At(flat) - 8, "end", absl::StrFormat("%.0f GFLOP/s", flat)));
  const double middle = std::sqrt(first * ridge);
  const double tilt =
      -180 / 3.14159265 * std::atan2(y.At(first * slope) - y.At(flat), x.At(ridge) - x.At(first));
  absl::StrAppend(
      &out, Text(x.At(middle), y.At(middle * slope) - 8, "middle",
                 absl::StrFormat("%.1f GB/s%s", slope, peaks.cache_resident() ? " (cache)" : ""),
                 absl::StrFormat(" transform=\"rotate(%.1f %.1f %.1f)\"", tilt, x.At(middle),
                                 y.At(middle * slope) - 8)));
  return out;
}

// A numbered point, with a dotted line up to the roof that holds it, and its line of the legend.
std::string Point(const EngineReport& report, size_t index, const Axis& x, const Axis& y) {
  constexpr double kLegendWidth = 270, kLegendLine = 19;
  const EngineRow& row = report.rows[index];
  const double at_x = x.At(row.intensity()), at_y = y.At(row.arithmetic() / kGiga);
  const double roof =
      std::min(report.peaks.operations_per_second, report.peaks.bytes_per_second * row.intensity());
  const double line = y.begin - 12 - kLegendLine * (report.rows.size() - 1.0 - index);
  const auto marker = [&](double cx, double cy) {
    return absl::StrFormat("<circle class=\"point\" cx=\"%.1f\" cy=\"%.1f\" r=\"8\"/>\n", cx, cy) +
           Text(cx, cy + 4, "middle", absl::StrCat(index + 1), " class=\"number\"");
  };
  return absl::StrCat(Line("drop", at_x, at_y, at_x, y.At(roof / kGiga)), marker(at_x, at_y),
                      marker(x.end - kLegendWidth, line - 4),
                      Text(x.end - kLegendWidth + 14, line, "start",
                           absl::StrFormat("%s: %.0f tokens/s, %.0f %%", row.name,
                                           row.tokens_per_second(), 100 * report.RoofShare(row))));
}

}  // namespace

std::string RooflinePlot(const EngineReport& report) {
  const double ridge = report.peaks.ridge(), flat = report.peaks.operations_per_second / kGiga;
  double least_x = ridge / 10, most_x = ridge * 10, least_y = flat / 10;
  for (const EngineRow& row : report.rows) {
    least_x = std::min(least_x, row.intensity() / 1.5);
    most_x = std::max(most_x, row.intensity() * 1.5);
    least_y = std::min(least_y, row.arithmetic() / kGiga / 1.5);
  }
  const Axis x = AxisOver(least_x, most_x, kLeft, kLeft + kWidth);
  const Axis y = AxisOver(least_y, flat * 1.2, kTop + kHeight, kTop);
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n"
      "<title>Roofline of %s</title>\n",
      kImageWidth, kImageHeight, Escaped(report.model));
  absl::StrAppend(
      &svg, kStyle,
      Text(kLeft, 22, "start",
           absl::StrFormat("%s, %s, %s", report.model, report.quantization, report.numerics),
           " class=\"title\""),
      Text(kLeft, 42, "start",
           absl::StrFormat("%s, %d threads, %s; %% of the roof", report.cpu, report.threads,
                           report.isa)),
      Grid(x, y),
      Text((x.begin + x.end) / 2, kImageHeight - 22, "middle", "operations per byte (FLOP/B)"),
      Text(18, (y.begin + y.end) / 2, "middle", "GFLOP/s",
           absl::StrFormat(" transform=\"rotate(-90 18 %.1f)\"", (y.begin + y.end) / 2)),
      Roofs(report.peaks, x, y));
  for (size_t i = 0; i < report.rows.size(); ++i) absl::StrAppend(&svg, Point(report, i, x, y));
  return svg + "</svg>\n";
}

}  // namespace setu::cli
