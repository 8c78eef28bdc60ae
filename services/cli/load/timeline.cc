// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/timeline.h"

#include <algorithm>
#include <cmath>

namespace setu::cli {
namespace {

std::optional<Middle> MiddleOf(std::vector<float>& values) {
  if (values.empty()) return {};
  const auto at = [&](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
    const auto nth = values.begin() + static_cast<int64_t>(std::max<size_t>(rank, 1) - 1);
    std::nth_element(values.begin(), nth, values.end());
    return static_cast<double>(*nth);
  };
  const Middle middle{.p50_ms = at(0.5), .p99_ms = at(0.99)};
  values.clear();
  return middle;
}

}  // namespace

Second& Timeline::Of(Duration at) {
  const int64_t second = std::chrono::floor<std::chrono::seconds>(at).count();
  if (open_ && seconds_.back().second < second) Close();
  if (!open_) {
    // A second in which nothing came is one too: that is how a stall looks.
    for (int64_t s = seconds_.empty() ? second : seconds_.back().second + 1; s < second; ++s) {
      seconds_.push_back({.second = s});
    }
    seconds_.push_back({.second = second});
  }
  open_ = true;
  return seconds_.back();
}

void Timeline::Close() {
  seconds_.back().first_token = MiddleOf(first_tokens_);
  seconds_.back().between = MiddleOf(betweens_);
  open_ = false;
}

void Timeline::FirstToken(Duration at, double ms) {
  Of(at);
  first_tokens_.push_back(static_cast<float>(ms));
}

void Timeline::Between(Duration at, double ms, int tokens) {
  Of(at);
  betweens_.insert(betweens_.end(), static_cast<size_t>(tokens), static_cast<float>(ms));
}

void Timeline::Append(Timeline& later) {
  Seconds();
  seconds_.insert(seconds_.end(), later.Seconds().begin(), later.Seconds().end());
}

const std::vector<Second>& Timeline::Seconds() {
  if (open_) Close();
  return seconds_;
}

}  // namespace setu::cli
