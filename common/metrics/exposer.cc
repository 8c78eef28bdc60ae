// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/exposer.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/host_port.h"

namespace setu::metrics {
namespace {

class Collector final : public prometheus::Collectable {
 public:
  Collector(std::string model, std::string role, Exposer::Report report)
      : model_(std::move(model)), role_(std::move(role)), report_(std::move(report)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    Scrape scrape(model_, role_);
    report_(scrape);
    return scrape.Families();
  }

 private:
  const std::string model_;
  const std::string role_;
  const Exposer::Report report_;
};

// The HTTP library binds one numeric address: the first that the host has, IPv4 before IPv6.
std::string Numeric(const std::string& listen) {
  const absl::StatusOr<HostPort> at = ParseHostPort(listen, /*lowest_port=*/0);
  if (!at.ok()) return listen;
  for (const int family : {AF_INET, AF_INET6}) {
    addrinfo hints{};
    hints.ai_family = family;
    addrinfo* first = nullptr;
    if (getaddrinfo(at->host.c_str(), nullptr, &hints, &first) != 0) continue;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(first, &freeaddrinfo);
    char host[NI_MAXHOST];
    const socklen_t size = sizeof host;
    const int flags = NI_NUMERICHOST;
    if (getnameinfo(first->ai_addr, first->ai_addrlen, host, size, nullptr, 0, flags) != 0)
      continue;
    return family == AF_INET ? absl::StrCat(host, ":", at->port)
                             : absl::StrCat("[", host, "]:", at->port);
  }
  return listen;
}

// Opens a connection to a numeric IPv4 host and drops it.
void Knock(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1) {
    static_cast<void>(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)));
  }
  constexpr int kPauseMs = 10;
  static_cast<void>(poll(nullptr, 0, kPauseMs));
  close(fd);
}

}  // namespace

struct Exposer::State {
  State(const std::string& listen, std::shared_ptr<Collector> source)
      : host(listen.substr(0, listen.rfind(':'))), collector(std::move(source)), server(listen) {
    server.RegisterCollectable(collector);
  }
  const std::string host;
  const std::shared_ptr<Collector> collector;
  prometheus::Exposer server;
};

Exposer::Exposer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Exposer::~Exposer() {
  // The HTTP library's listener looks whether it shall stop only every two seconds, or when a
  // connection comes: so one comes until it has stopped.
  std::atomic<bool> stopped = false;
  std::thread knocking([&stopped, host = state_->host, port = port()] {
    while (!stopped) Knock(host, port);
  });
  state_.reset();
  stopped = true;
  knocking.join();
}

absl::StatusOr<std::unique_ptr<Exposer>> Exposer::Start(const std::string& listen,
                                                        std::string model, std::string role,
                                                        Report report) {
  auto collector =
      std::make_shared<Collector>(std::move(model), std::move(role), std::move(report));
  try {
    return std::unique_ptr<Exposer>(
        new Exposer(std::make_unique<State>(Numeric(listen), std::move(collector))));
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics at ", listen, " (", error.what(),
                     "): is the port free and the host an address of this machine?"));
  }
}

int Exposer::port() const { return state_->server.GetListeningPorts().front(); }

std::string Exposer::url() const {
  return absl::StrCat("http://", state_->host, ":", port(), "/metrics");
}

}  // namespace setu::metrics
