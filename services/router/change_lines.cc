// SPDX-License-Identifier: Apache-2.0
#include "services/router/change_lines.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace setu::router {

std::optional<std::string> ChangeLines::Next(TimePoint now, absl::string_view state,
                                             absl::string_view line) {
  if (state != seen_) {
    seen_ = std::string(state);
    ++changes_;
  }
  if (state == told_ || !MayWrite(now)) return std::nullopt;
  told_ = std::string(state);
  const int64_t untold = changes_ - 1;
  changes_ = 0;
  if (untold == 0) return std::string(line);
  return absl::StrCat(line, " (", untold, " changes before had no line)");
}

bool ChangeLines::MayWrite(TimePoint now) {
  const int64_t pauses = (now - refilled_) / kPause;
  refilled_ += pauses * kPause;
  budget_ = std::min(kBurst, budget_ + pauses);
  if (budget_ == 0) return false;
  --budget_;
  return true;
}

}  // namespace setu::router
