// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace setu::cli {
namespace {

constexpr double kLeft = 64, kTop = 34, kWidth = 520, kHeight = 220;  // of the plot's field
constexpr double kImageWidth = 600, kImageHeight = 300;
// Of lines in turn: they hold on white and on black.
constexpr std::array<const char*, 6> kColours = {"#2f81f7", "#e16f24", "#2da44e",
                                                 "#a371f7", "#d4a72c", "#cf222e"};

struct Axis {
  Scale scale;
  double least, most;  // values at its ends
  double begin, end;   // pixels

  double At(double value) const {
    const double share = scale == Scale::kLog ? std::log(value / least) / std::log(most / least)
                                              : (value - least) / (most - least);
    return begin + share * (end - begin);
  }
};

// About five whole steps of 1, 2 or 5; of a logarithm, its decades.
std::vector<double> Ticks(const Axis& axis) {
  std::vector<double> ticks;
  if (axis.scale == Scale::kLog) {
    for (double at = axis.least; at <= axis.most * 1.001; at *= 10) ticks.push_back(at);
    return ticks;
  }
  const double rough = (axis.most - axis.least) / 5;
  const double decade = std::pow(10, std::floor(std::log10(rough)));
  const double step = decade * (rough / decade < 2 ? 2 : rough / decade < 5 ? 5 : 10);
  for (double at = std::ceil(axis.least / step) * step; at <= axis.most; at += step) {
    ticks.push_back(at);
  }
  return ticks;
}

Axis AxisOver(Scale scale, double least, double most, double begin, double end) {
  if (scale == Scale::kLog) {
    least = std::pow(10, std::floor(std::log10(least)));
    most = std::pow(10, std::ceil(std::log10(most)));
    if (most <= least) most = least * 10;
  } else {
    least = std::min(least, 0.0);
    if (most <= least) most = least + 1;
  }
  return {scale, least, most, begin, end};
}

std::string Text(double x, double y, const char* anchor, const std::string& text,
                 const std::string& more = "") {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x, y,
                         anchor, more, Escaped(text));
}

std::string Grid(const Axis& x, const Axis& y) {
  std::string out;
  const auto line = [&](double x1, double y1, double x2, double y2) {
    absl::StrAppendFormat(
        &out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x1, y1,
        x2, y2);
  };
  for (double at : Ticks(x)) {
    line(x.At(at), y.begin, x.At(at), y.end);
    absl::StrAppend(&out, Text(x.At(at), y.begin + 16, "middle", absl::StrFormat("%g", at)));
  }
  for (double at : Ticks(y)) {
    line(x.begin, y.At(at), x.end, y.At(at));
    absl::StrAppend(&out, Text(x.begin - 6, y.At(at) + 4, "end", absl::StrFormat("%g", at)));
  }
  return out;
}

bool Fits(Scale scale, double value) {
  return std::isfinite(value) && (scale == Scale::kLinear || value > 0);
}

// The pieces of a line between its breaks; one of a single point shows as a dot.
std::string Pieces(const Plot::Line& line, const Axis& x, const Axis& y, const char* colour) {
  std::string out, piece;
  for (const auto& [px, py] : line.points) {
    const bool fits = Fits(x.scale, px) && Fits(y.scale, py);
    if (fits)
      absl::StrAppendFormat(&piece, "%s%.1f %.1f", piece.empty() ? "M" : "L", x.At(px), y.At(py));
    if (!fits && !piece.empty()) absl::StrAppend(&out, std::exchange(piece, ""), "h0");
  }
  if (!piece.empty()) absl::StrAppend(&out, piece, "h0");
  return absl::StrFormat("<path class=\"line\" stroke=\"%s\" d=\"%s\"/>\n", colour, out);
}

}  // namespace

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Plot::Svg() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double least_x = kInfinity, most_x = -kInfinity, least_y = kInfinity, most_y = -kInfinity;
  std::vector<const Line*> shown;
  for (const Line& line : lines) {
    bool any = false;
    for (const auto& [x, y] : line.points) {
      if (!Fits(x_scale, x) || !Fits(y_scale, y)) continue;
      any = true;
      least_x = std::min(least_x, x), most_x = std::max(most_x, x);
      least_y = std::min(least_y, y), most_y = std::max(most_y, y);
    }
    if (any) shown.push_back(&line);
  }
  if (shown.empty()) return "";
  const Axis x = AxisOver(x_scale, least_x, most_x, kLeft, kLeft + kWidth);
  const Axis y = AxisOver(y_scale, least_y, most_y, kTop + kHeight, kTop);
  std::string svg =
      absl::StrFormat("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\"><title>%s</title>\n",
                      kImageWidth, kImageHeight, Escaped(title));
  absl::StrAppend(&svg, Text(kLeft, 18, "start", title, " class=\"title\""), Grid(x, y),
                  Text(x.end, kImageHeight - 8, "end", x_label),
                  Text(6, kTop - 6, "start", y_label));
  double legend = kImageWidth - 8;
  for (size_t i = shown.size(); i-- > 0;) {
    const char* colour = kColours[i % kColours.size()];
    absl::StrAppend(
        &svg, Pieces(*shown[i], x, y, colour),
        Text(legend, 18, "end", shown[i]->name, absl::StrFormat(" style=\"fill:%s\"", colour)));
    legend -= 14 + 7 * static_cast<double>(shown[i]->name.size());
  }
  return svg + "</svg>\n";
}

}  // namespace setu::cli
