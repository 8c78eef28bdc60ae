// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace setu::rpc {
namespace {

// The soft limit is often 1024, where the hard one is a million.
rlim_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t soft = std::exchange(limit.rlim_cur, limit.rlim_max);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : soft;
}

absl::StatusOr<int> BoundOnDescriptors() {
  constexpr rlim_t kFewest = 128;
  constexpr rlim_t kKeptBack = 32;
  constexpr rlim_t kMostConnections = 16'384;
  const rlim_t limit = RaiseDescriptorLimit();
  if (limit < kFewest) {
    return absl::ResourceExhaustedError(absl::StrCat("the limit of open files is ", limit,
                                                     ", a server needs at least ", kFewest,
                                                     "; raise it (ulimit -n)"));
  }
  return static_cast<int>(std::min(kMostConnections, limit - std::max(kKeptBack, limit / 8)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Start(Listener listener, Logger& logger,
                                                          Take take) {
  SETU_ASSIGN_OR_RETURN(const int bound, BoundOnDescriptors());
  Descriptor wake(eventfd(0, EFD_CLOEXEC));
  if (wake.get() < 0) return absl::ResourceExhaustedError("no descriptor is left (ulimit -n)");
  SETU_RETURN_IF_ERROR(listener.Listen());
  return std::unique_ptr<Acceptor>(
      new Acceptor(std::move(listener), std::move(wake), bound, logger, std::move(take)));
}

Acceptor::Acceptor(Listener listener, Descriptor wake, int bound, Logger& logger, Take take)
    : listener_(std::move(listener)),
      wake_(std::move(wake)),
      bound_(bound),
      logger_(logger),
      take_(std::move(take)),
      thread_([this] { Run(); }) {}

Acceptor::~Acceptor() {
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void Acceptor::Run() {
  std::vector<pollfd> watched = {{.fd = wake_.get(), .events = POLLIN}};
  for (const Descriptor& socket : listener_.sockets()) {
    watched.push_back({.fd = socket.get(), .events = POLLIN});
  }
  while (true) {
    if (poll(watched.data(), watched.size(), -1) < 0) continue;  // a signal
    if (watched[0].revents != 0) return;
    for (size_t i = 1; i < watched.size(); ++i) {
      if (watched[i].revents != 0) AcceptOne(listener_.sockets()[i - 1]);
    }
  }
}

void Acceptor::AcceptOne(const Descriptor& socket) {
  Descriptor connection(accept4(socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (connection.get() >= 0) {
    // The system gives out the lowest free number: the ones below are all in use.
    return connection.get() < bound_ ? take_(std::move(connection)) : Refuse();
  }
  // Else the client has gone again, or another thread of this process was faster.
  if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
  // The rest of the process has what was kept back: the client waits until some is free again.
  constexpr int kPauseMs = 100;
  pollfd stop{.fd = wake_.get(), .events = POLLIN};
  poll(&stop, 1, kPauseMs);
}

void Acceptor::Refuse() {
  // A line for the first, the second, the fourth: a storm must not fill the log.
  if (!std::has_single_bit(++refused_)) return;
  logger_.Warning(absl::StrCat("closed a new connection, ", refused_, " so far: ", bound_,
                               " descriptors are in use (raise ulimit -n, or use fewer "
                               "connections: each carries thousands of calls)"));
}

}  // namespace setu::rpc
