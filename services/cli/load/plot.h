// SPDX-License-Identifier: Apache-2.0
// A line plot as an SVG image that needs nothing else. Pure.
//
//   Plot plot = {.title = "ITL", .x_label = "s", .y_label = "ms", .y_scale = Scale::kLog};
//   plot.lines.push_back({"p50", {{0, 12.0}, {1, 12.5}}});
//   plot.Svg()
#ifndef SETU_SERVICES_CLI_LOAD_PLOT_H_
#define SETU_SERVICES_CLI_LOAD_PLOT_H_

#include <string>
#include <utility>
#include <vector>

namespace setu::cli {

enum class Scale { kLinear, kLog };

struct Plot {
  struct Line {
    std::string name;
    // Ascending in x. One that is not finite, or that a logarithm cannot take, breaks the line.
    std::vector<std::pair<double, double>> points;
  };
  std::string title, x_label, y_label;
  Scale x_scale = Scale::kLinear, y_scale = Scale::kLinear;
  std::vector<Line> lines;

  // Empty where there is no point to show.
  std::string Svg() const;
};

// Safe as text of HTML and SVG.
std::string Escaped(const std::string& text);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_PLOT_H_
