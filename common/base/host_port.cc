// SPDX-License-Identifier: Apache-2.0
#include "common/base/host_port.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace setu {
namespace {

bool IsAddress(int family, const std::string& host) {
  in6_addr scratch;
  return host.find('\0') == host.npos && inet_pton(family, host.c_str(), &scratch) == 1;
}

bool IsName(const std::string& host) {
  constexpr size_t kLongest = 253;  // of the DNS
  if (host.empty() || host.size() > kLongest || host.front() == '.' || host.front() == '-') {
    return false;
  }
  return std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
  });
}

// Whoever ends in a number means an IPv4 address, and 256.0.0.1 is none.
bool EndsInANumber(const std::string& host) {
  const std::string last = host.substr(host.rfind('.') + 1);
  return !last.empty() && std::all_of(last.begin(), last.end(), absl::ascii_isdigit);
}

bool IsHost(const std::string& host) {
  return EndsInANumber(host) ? IsAddress(AF_INET, host) : IsName(host);
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text, int lowest_port) {
  constexpr int kHighestPort = 65535;
  const size_t colon = text.rfind(':');
  HostPort at{.host = std::string(text.substr(0, colon))};
  const absl::string_view digits = colon == text.npos ? "" : text.substr(colon + 1);
  const bool bracketed = at.host.size() > 2 && at.host.front() == '[' && at.host.back() == ']';
  if (bracketed) at.host = at.host.substr(1, at.host.size() - 2);
  const bool digits_only = std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit);
  if ((bracketed ? IsAddress(AF_INET6, at.host) : IsHost(at.host)) && digits_only &&
      absl::SimpleAtoi(digits, &at.port) && at.port >= lowest_port && at.port <= kHighestPort) {
    return at;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "must be HOST:PORT, with a name, an IPv4 address or an [IPv6 address] and a port of ",
      lowest_port, " to ", kHighestPort));
}

}  // namespace setu
