// SPDX-License-Identifier: Apache-2.0
#include "services/router/resolver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace setu::router {
namespace {

constexpr char kDnsScheme[] = "dns:///";

struct HostPort {
  std::string host;
  std::string port;
};

HostPort Split(const std::string& address) {
  const std::string plain(absl::StripPrefix(address, kDnsScheme));
  const size_t colon = plain.rfind(':');
  if (colon == std::string::npos) return {plain, ""};
  return {plain.substr(0, colon), plain.substr(colon + 1)};
}

bool IsIpAddress(const std::string& host) {
  in6_addr scratch;
  return host.starts_with('[') || inet_pton(AF_INET, host.c_str(), &scratch) == 1;
}

}  // namespace

bool NeedsLookup(const std::string& address) {
  const HostPort parts = Split(address);
  return !parts.port.empty() && !parts.host.empty() && !IsIpAddress(parts.host);
}

std::vector<std::string> OneFamily(std::vector<std::string> addresses) {
  const auto is_ipv6 = [](const std::string& address) { return address.starts_with('['); };
  if (!std::all_of(addresses.begin(), addresses.end(), is_ipv6)) std::erase_if(addresses, is_ipv6);
  return addresses;
}

absl::StatusOr<std::vector<std::string>> LookUp(const std::string& name) {
  const HostPort parts = Split(name);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat("cannot resolve ", name, ": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    char host[NI_MAXHOST];
    if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, nullptr, 0, NI_NUMERICHOST) !=
        0) {
      continue;
    }
    addresses.push_back(a->ai_family == AF_INET6 ? absl::StrCat("[", host, "]:", parts.port)
                                                 : absl::StrCat(host, ":", parts.port));
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return OneFamily(std::move(addresses));
}

Resolver::Resolver(std::vector<std::string> names, Duration interval, Lookup lookup, Found found)
    : names_(std::move(names)),
      interval_(interval),
      lookup_(std::move(lookup)),
      found_(std::move(found)) {
  if (!names_.empty()) thread_ = std::thread([this] { Run(); });
}

Resolver::~Resolver() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Resolver::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    for (const std::string& name : names_) found_(name, lookup_(name));
    lock.lock();
    stopped_.wait_for(lock, interval_, [this] { return stopping_; });
  }
}

}  // namespace setu::router
