// SPDX-License-Identifier: Apache-2.0
#include "services/router/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace setu::router {
namespace {

struct Reference {
  const std::string* stop = nullptr;
  size_t end = 0;
};

// By the definition: at each end in turn, the longest stop string that the text ends with there.
Reference FirstMatch(std::string_view text, const std::vector<std::string>& stops, size_t from) {
  for (size_t end = from + 1; end <= text.size(); ++end) {
    Reference found;
    for (const std::string& stop : stops) {
      if (!text.substr(0, end).ends_with(stop)) continue;
      if (found.stop == nullptr || stop.size() > found.stop->size()) found = {&stop, end};
    }
    if (found.stop != nullptr) return found;
  }
  return {};
}

size_t Pending(std::string_view text, const std::vector<std::string>& stops) {
  size_t most = 0;
  for (const std::string& stop : stops) {
    for (size_t n = 1; n < stop.size() && n <= text.size(); ++n) {
      if (text.ends_with(std::string_view(stop).substr(0, n))) most = std::max(most, n);
    }
  }
  return most;
}

TEST(StopMatcher, AgreesWithTheDefinitionOnRandomTextsAndPieces) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    auto word = [&](size_t most) {
      std::string text(1 + random() % most, 'a');
      for (char& c : text) c = static_cast<char>('a' + random() % 2);
      return text;
    };
    std::vector<std::string> stops(1 + random() % 3);
    for (std::string& stop : stops) stop = word(6);
    const std::string text = word(40);
    const size_t passed_over = random() % 10;  // bytes in which no match counts

    StopMatcher matcher(stops);
    Reference found;
    size_t at = 0;
    while (at < text.size() && found.stop == nullptr) {
      const bool may_match = at >= passed_over;
      size_t piece = 1 + random() % 5;
      if (!may_match) piece = std::min(piece, passed_over - at);
      const auto match = matcher.Feed(std::string_view(text).substr(at, piece), may_match);
      if (match) found = {match->stop, at + match->end};
      at = std::min(text.size(), at + piece);
      if (!match) {
        ASSERT_EQ(matcher.pending(), Pending(text.substr(0, at), stops)) << "seed " << seed;
      }
    }
    const Reference expected = FirstMatch(text, stops, passed_over);
    ASSERT_EQ(found.end, expected.end) << "seed " << seed;
    if (expected.stop == nullptr) continue;
    ASSERT_EQ(*found.stop, *expected.stop) << "seed " << seed;
  }
}

TEST(StopMatcher, WithoutStopStringsNothingMatchesAndNothingWaits) {
  const std::vector<std::string> none;
  StopMatcher matcher(none);
  EXPECT_FALSE(matcher.Feed("text", true));
  EXPECT_EQ(matcher.pending(), 0u);
}

}  // namespace
}  // namespace setu::router
