// SPDX-License-Identifier: Apache-2.0
// Finds stop strings in a text that comes in pieces, and says how much of its end may still become
// one. Knuth-Morris-Pratt per stop string (SIAM J. Comput. 6(2), 1977): each byte costs O(1) per
// stop string, whatever was seen before.
//
//   StopMatcher matcher(request.stop_strings());
//   if (auto match = matcher.Feed(text, /*may_match=*/true)) Cut(match->begins_before_end);
//   HoldBack(matcher.pending());
#ifndef SETU_SERVICES_ROUTER_STOP_MATCHER_H_
#define SETU_SERVICES_ROUTER_STOP_MATCHER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace setu::router {

class StopMatcher {
 public:
  struct Match {
    const std::string* stop = nullptr;
    size_t end = 0;  // one past its last byte, within the piece
  };

  // `stops` must outlive this; none is empty.
  explicit StopMatcher(const std::vector<std::string>& stops);

  // The match that is complete first; of those that end on the same byte, the longest. Where
  // may_match is false, what is complete inside this piece is passed over. Ends at a match: nothing
  // may be fed after it.
  std::optional<Match> Feed(std::string_view piece, bool may_match);

  // Bytes at the end of all text so far that begin a stop string.
  size_t pending() const;

 private:
  struct Stop {
    const std::string* text;
    std::vector<uint16_t> borders;  // [i]: longest proper prefix that ends the first i bytes
    size_t matched = 0;
  };
  static bool Advance(Stop& stop, char byte);

  std::vector<Stop> stops_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_STOP_MATCHER_H_
