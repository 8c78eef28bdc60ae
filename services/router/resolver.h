// SPDX-License-Identifier: Apache-2.0
// Turns names into addresses, again and again, on a thread of its own: DNS may block for seconds.
//
//   Resolver resolver({"dns:///setu-decode:50053"}, std::chrono::seconds(2), LookUp,
//                     [&](const std::string& name, const auto& addresses) {...});
#ifndef SETU_SERVICES_ROUTER_RESOLVER_H_
#define SETU_SERVICES_ROUTER_RESOLVER_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"

namespace setu::router {

// True for dns:///HOST:PORT and for HOST:PORT where HOST is no IP address. Anything else is an
// address already.
bool NeedsLookup(const std::string& address);

// Of addresses of both IPv4 and IPv6 the former alone: a name has each worker once in either, and
// one that listens on 0.0.0.0 or on [::] takes IPv4. Where there is no IPv4, all.
std::vector<std::string> OneFamily(std::vector<std::string> addresses);

// OneFamily of all addresses of a name, by getaddrinfo, sorted. UNAVAILABLE names it.
absl::StatusOr<std::vector<std::string>> LookUp(const std::string& name);

class Resolver {
 public:
  using Lookup = std::function<absl::StatusOr<std::vector<std::string>>(const std::string&)>;
  // On the resolver's thread, after each lookup.
  using Found = std::function<void(const std::string& name,
                                   absl::StatusOr<std::vector<std::string>> addresses)>;

  // Starts at once; no thread where there are no names.
  Resolver(std::vector<std::string> names, Duration interval, Lookup lookup, Found found);
  ~Resolver();

 private:
  void Run();
  const std::vector<std::string> names_;
  const Duration interval_;
  const Lookup lookup_;
  const Found found_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_RESOLVER_H_
