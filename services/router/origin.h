// SPDX-License-Identifier: Apache-2.0
// What is known of a request before it is parsed: when it came, and what its metadata calls it.
//
//   const Origin origin{clock.Now(), PlainOrEmpty(request_id), PlainOrEmpty(traceparent)};
#ifndef SETU_SERVICES_ROUTER_ORIGIN_H_
#define SETU_SERVICES_ROUTER_ORIGIN_H_

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "common/base/clock.h"

namespace setu::router {

struct Origin {
  TimePoint at;
  std::string request_id;   // empty: none
  std::string traceparent;  // likewise
};

// The value where it is fit to travel on as metadata: short, printable ASCII. Else empty.
inline std::string PlainOrEmpty(std::string value) {
  constexpr size_t kLongest = 128;
  const bool plain =
      value.size() <= kLongest && std::all_of(value.begin(), value.end(), [](char c) {
        return absl::ascii_isprint(static_cast<unsigned char>(c));
      });
  return plain ? value : std::string();
}

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_ORIGIN_H_
