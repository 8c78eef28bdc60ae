// SPDX-License-Identifier: Apache-2.0
// Stop strings found in a text that comes in pieces are those that a search of the whole text
// finds.
#include "services/router/stop_matcher.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "tests/fuzz/input.h"

namespace setu::router {
namespace {

constexpr size_t kMostText = 512;  // the plain search is cubic

// By the definition: at each end behind `from` in turn, the longest stop string that ends there.
std::optional<StopMatcher::Match> FirstMatch(std::string_view text, size_t from,
                                             const std::vector<std::string>& stops) {
  for (size_t end = from + 1; end <= text.size(); ++end) {
    const std::string* longest = nullptr;
    for (const std::string& stop : stops) {
      if (!text.substr(0, end).ends_with(stop)) continue;
      if (longest == nullptr || stop.size() > longest->size()) longest = &stop;
    }
    if (longest != nullptr) return StopMatcher::Match{.stop = longest, .end = end};
  }
  return std::nullopt;
}

size_t Pending(std::string_view text, const std::vector<std::string>& stops) {
  size_t most = 0;
  for (const std::string& stop : stops) {
    for (size_t bytes = 1; bytes < stop.size(); ++bytes) {
      if (text.ends_with(std::string_view(stop).substr(0, bytes))) most = std::max(most, bytes);
    }
  }
  return most;
}

void CheckMatches(fuzz::Input input) {
  std::vector<std::string> stops;
  for (size_t left = input.Below(5); left > 0; --left) {
    const std::string_view stop = input.Text(1 + input.Below(16));
    stops.emplace_back(stop.empty() ? "a" : stop);
  }
  const size_t passed_over = input.Below(32);  // bytes in which nothing may match
  const size_t piece = 1 + input.Below(8);
  const std::string_view text = input.Text(kMostText);

  const auto expected = FirstMatch(text, passed_over, stops);
  StopMatcher matcher(stops);
  for (size_t at = 0; at < text.size();) {
    const bool may_match = at >= passed_over;
    const size_t bytes = may_match ? piece : std::min(piece, passed_over - at);
    const auto match = matcher.Feed(text.substr(at, bytes), may_match);
    if (match) {
      SETU_CHECK(expected && at + match->end == expected->end, "a match ends where it has to");
      SETU_CHECK(*match->stop == *expected->stop, "a match is the longest there");
      return;
    }
    at = std::min(text.size(), at + bytes);
    SETU_CHECK(!expected || at < expected->end, "no match is passed over");
    SETU_CHECK(matcher.pending() == Pending(text.substr(0, at), stops),
               "what is held back may still become a stop string, and nothing else");
  }
}

}  // namespace
}  // namespace setu::router

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  setu::router::CheckMatches({data, size});
  return 0;
}
