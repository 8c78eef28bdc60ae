// SPDX-License-Identifier: Apache-2.0
#include "services/router/stop_matcher.h"

#include <algorithm>

namespace setu::router {

StopMatcher::StopMatcher(const std::vector<std::string>& stops) {
  for (const std::string& text : stops) {
    Stop& stop = stops_.emplace_back(Stop{.text = &text, .borders = {0, 0}});
    for (size_t i = 1; i < text.size(); ++i) {
      Advance(stop, text[i]);
      stop.borders.push_back(static_cast<uint16_t>(stop.matched));
    }
    stop.matched = 0;
  }
}

// True where `byte` completes the stop string.
bool StopMatcher::Advance(Stop& stop, char byte) {
  const std::string& text = *stop.text;
  if (stop.matched == text.size()) stop.matched = stop.borders[stop.matched];
  while (stop.matched > 0 && text[stop.matched] != byte) {
    stop.matched = stop.borders[stop.matched];
  }
  if (text[stop.matched] == byte) ++stop.matched;
  return stop.matched == text.size();
}

std::optional<StopMatcher::Match> StopMatcher::Feed(std::string_view piece, bool may_match) {
  if (stops_.empty()) return std::nullopt;
  for (size_t i = 0; i < piece.size(); ++i) {
    const std::string* longest = nullptr;
    for (Stop& stop : stops_) {
      if (!Advance(stop, piece[i])) continue;
      if (longest == nullptr || stop.text->size() > longest->size()) longest = stop.text;
    }
    if (longest != nullptr && may_match) return Match{.stop = longest, .end = i + 1};
  }
  return std::nullopt;
}

size_t StopMatcher::pending() const {
  size_t most = 0;
  for (const Stop& stop : stops_) {
    const bool whole = stop.matched == stop.text->size();  // passed over: only its border counts
    most = std::max<size_t>(most, whole ? stop.borders[stop.matched] : stop.matched);
  }
  return most;
}

}  // namespace setu::router
