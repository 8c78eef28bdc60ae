// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/lengths.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/utf8.h"

namespace setu::cli {
namespace {

std::optional<int32_t> Length(absl::string_view text) {
  int32_t length = 0;
  if (!absl::SimpleAtoi(text, &length) || length < 1 || length > Lengths::kMost) return {};
  return length;
}

std::optional<double> Positive(absl::string_view text, double most) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !(value > 0) || value > most) return {};
  return value;
}

}  // namespace

absl::StatusOr<Lengths> Lengths::Parse(absl::string_view flag, absl::string_view text) {
  const absl::Status refused = absl::InvalidArgumentError(absl::StrCat(
      flag, " is '", std::string(Utf8Start({text.data(), text.size()}, 80)),
      "'; it must be N, LOW..HIGH, A,B,C or ",
      "lognormal:MEDIAN:SIGMA:MOST, with lengths between 1 and ", kMost, " and a sigma up to 10"));
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "lognormal:")) {
    const std::vector<absl::string_view> parts = absl::StrSplit(rest, ':');
    if (parts.size() != 3) return refused;
    const auto median = Positive(parts[0], kMost);
    const auto sigma = Positive(parts[1], 10);
    const auto most = Length(parts[2]);
    if (!median || !sigma || !most) return refused;
    return Lengths(Lognormal{.median = *median, .sigma = *sigma, .most = *most});
  }
  if (absl::StrContains(text, "..")) {
    const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(text, "..");
    const auto low = Length(ends.first), high = Length(ends.second);
    if (!low || !high || *low > *high) return refused;
    return Lengths(Uniform{.low = *low, .high = *high});
  }
  std::vector<int32_t> listed;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const auto length = Length(absl::StripAsciiWhitespace(part));
    if (!length) return refused;
    listed.push_back(*length);
  }
  return Lengths(std::move(listed));
}

int32_t Lengths::Draw(Draws& draws) const {
  if (const auto* uniform = std::get_if<Uniform>(&form_)) {
    const auto span = static_cast<uint64_t>(uniform->high - uniform->low) + 1;
    return uniform->low + static_cast<int32_t>(draws.Below(span));
  }
  if (const auto* listed = std::get_if<std::vector<int32_t>>(&form_)) {
    return (*listed)[draws.Below(listed->size())];
  }
  const auto& form = std::get<Lognormal>(form_);
  const double drawn = std::round(form.median * std::exp(form.sigma * draws.Normal()));
  return static_cast<int32_t>(std::clamp(drawn, 1.0, static_cast<double>(form.most)));
}

}  // namespace setu::cli
