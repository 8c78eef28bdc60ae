// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/host_port.h"
#include "common/base/status_macros.h"

namespace setu::rpc {
namespace {

struct Address {
  sockaddr_storage bytes{};
  socklen_t length = sizeof bytes;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
  // Both families have the port at the same place.
  in_port_t& port() { return reinterpret_cast<sockaddr_in*>(&bytes)->sin_port; }
  bool operator==(const Address& other) const {
    return length == other.length && memcmp(&bytes, &other.bytes, length) == 0;
  }
};
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));

// Each address of a host once.
absl::StatusOr<std::vector<Address>> LookUp(const HostPort& at) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int error = getaddrinfo(at.host.c_str(), absl::StrCat(at.port).c_str(), &hints, &first);
  if (error != 0) return absl::UnavailableError(gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(first, &freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* info = first; info != nullptr; info = info->ai_next) {
    Address address{.length = info->ai_addrlen};
    memcpy(&address.bytes, info->ai_addr, info->ai_addrlen);
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
      addresses.push_back(address);
    }
  }
  return addresses;
}

void Set(const Descriptor& socket, int level, int option, int value) {
  setsockopt(socket.get(), level, option, &value, sizeof value);
}

// Accepted connections inherit its options. None, with errno set, where it cannot be bound.
Descriptor Bound(Address& address) {
  constexpr int kUnansweredMs = 10'000;  // what was sent and is not acknowledged ends a connection
  const int family = address.get()->sa_family;
  Descriptor made(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (made.get() < 0) return made;
  Set(made, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(made, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnansweredMs);
  if (family == AF_INET6) Set(made, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  // Without SO_REUSEADDR the port is ours alone. Where connections of a former process linger, only
  // with it: two that then start at the same time learn of each other when they listen.
  if (bind(made.get(), address.get(), address.length) == 0) return made;
  if (errno != EADDRINUSE) return Descriptor(-1);
  Set(made, SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(made.get(), address.get(), address.length) == 0) return made;
  return Descriptor(-1);
}

in_port_t PortOf(const Descriptor& socket) {
  Address address;
  getsockname(socket.get(), address.get(), &address.length);
  return address.port();
}

}  // namespace

absl::Status Listener::Failed(int error) const {
  const char* what_to_do = error == EADDRINUSE      ? "stop who uses it, or choose another"
                           : error == EADDRNOTAVAIL ? "choose an address of this machine"
                                                    : "choose another";
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", place_, ": ", strerror(error), "; ", what_to_do));
}

absl::StatusOr<Listener> Listener::Bind(absl::string_view flag, const std::string& address) {
  const absl::StatusOr<HostPort> at = ParseHostPort(address, /*lowest_port=*/0);
  if (!at.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " is '", address, "'; it ", at.status().message()));
  }
  Listener listener(absl::StrCat(address, " (", flag, ")"));
  absl::StatusOr<std::vector<Address>> found = LookUp(*at);
  if (!found.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", listener.place_, ": ",
                                               found.status().message(),
                                               "; choose an address of this machine"));
  }
  int error = 0;
  for (Address& one : *found) {
    if (listener.port_ != 0) one.port() = htons(static_cast<uint16_t>(listener.port_));
    Descriptor socket = Bound(one);
    if (socket.get() < 0) {
      error = errno;
      // A name may have an address of a kind that is switched off here, such as localhost's ::1.
      if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT) continue;
      return listener.Failed(error);
    }
    listener.port_ = ntohs(PortOf(socket));
    listener.sockets_.push_back(std::move(socket));
  }
  if (listener.sockets_.empty()) return listener.Failed(error);
  return listener;
}

absl::Status Listener::Listen() {
  for (const Descriptor& socket : sockets_) {
    // Now, so that connections which outlive this process do not keep its port from the next one.
    Set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    if (listen(socket.get(), SOMAXCONN) != 0) return Failed(errno);
  }
  return absl::OkStatus();
}

}  // namespace setu::rpc
