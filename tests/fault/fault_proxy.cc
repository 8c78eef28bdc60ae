// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "tests/fault/socket_owner.h"

namespace setu::test {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// On their way at most, so that a delay costs no throughput and a fast sender no memory.
constexpr size_t kMaxUnderWay = 1 << 20;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

int PortIn(const std::string& address) {
  int port = 0;
  SETU_CHECK(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port),
             "an address ends in a port");
  return port;
}

int BoundPort(int socket) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

rpc::Descriptor Listen() {
  rpc::Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in any = Loopback(0);
  SETU_CHECK(bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0 &&
                 listen(listener.get(), 128) == 0,
             "the loopback has a free port");
  return listener;
}

// A socket that is closed from here on says so by a reset.
void ResetWhenClosed(int socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

bool WouldBlock() { return errno == EAGAIN || errno == EINTR; }

// One way of one connection.
class Half {
 public:
  Half(int from, int to, uint64_t seed, FaultProxy::Counts& counts)
      : from_(from), to_(to), random_(seed), counts_(counts) {}

  bool WantsRead(const FaultProxy::Way& way) const {
    return !ended_ && !way.held && under_way_ < kMaxUnderWay;
  }
  bool WantsWrite(const FaultProxy::Way& way, SteadyTime now) const {
    return !way.held && !pieces_.empty() && pieces_.front().due <= now;
  }
  // When there will be something to write that is not there now; max: nothing is known of.
  SteadyTime Due(const FaultProxy::Way& way, SteadyTime now) const {
    const bool waits = !way.held && !pieces_.empty() && pieces_.front().due > now;
    return waits ? pieces_.front().due : SteadyTime::max();
  }
  // Neither end of it will be heard of again.
  bool over() const { return ended_ && (dead_ || shut_); }
  bool dead() const { return dead_; }
  // What is on its way is lost, and what comes.
  void Die() {
    dead_ = true;
    pieces_.clear();
    under_way_ = 0;
  }

  // Both: false where the connection is lost.
  bool Read(const FaultProxy::Way& way) {
    if (way.swallowed && !dead_) Die();
    if (!WantsRead(way)) return true;
    char bytes[16 << 10];
    const ssize_t n = recv(from_, bytes, sizeof bytes, 0);
    if (n < 0 && WouldBlock()) return true;
    if (n <= 0) {
      ended_ = true;
      return n == 0 || dead_;
    }
    if (dead_ || ends_) {
      counts_.swallowed += dead_ ? n : 0;
      return true;
    }
    Take({bytes, static_cast<size_t>(n)}, way);
    return true;
  }
  bool Write(const FaultProxy::Way& way, SteadyTime now) {
    while (WantsWrite(way, now)) {
      std::string& bytes = pieces_.front().bytes;
      const ssize_t n = send(to_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0) return WouldBlock();
      counts_.passed += n;
      under_way_ -= n;
      bytes.erase(0, n);
      if (!bytes.empty()) return true;
      pieces_.pop_front();
    }
    if ((ended_ || ends_) && !way.held && pieces_.empty() && !dead_ &&
        !std::exchange(shut_, true)) {
      shutdown(to_, SHUT_WR);
    }
    return true;
  }

 private:
  struct Piece {
    SteadyTime due;
    std::string bytes;
  };

  void Take(std::string bytes, const FaultProxy::Way& way) {
    const uint64_t left = way.end_after > taken_ ? way.end_after - taken_ : 0;
    if (bytes.size() >= left) {
      bytes.resize(left);
      ends_ = true;
      ++counts_.ended;
    }
    if (bytes.empty()) return;
    taken_ += bytes.size();
    if (way.flips > 0) Flip(bytes, way.flips);
    if (way.delay.count() > 0) counts_.delayed += bytes.size();
    under_way_ += bytes.size();
    const SteadyTime now = std::chrono::steady_clock::now();
    const SteadyTime behind = pieces_.empty() ? now : pieces_.back().due;
    pieces_.push_back({std::max(behind, now + way.delay), std::move(bytes)});
  }
  void Flip(std::string& bytes, double share) {
    std::bernoulli_distribution hit(share);
    for (char& byte : bytes) {
      if (!hit(random_)) continue;
      byte = static_cast<char>(byte ^ 1 << random_() % 8);
      ++counts_.flipped;
    }
  }

  const int from_, to_;
  std::mt19937_64 random_;
  FaultProxy::Counts& counts_;
  std::deque<Piece> pieces_;
  size_t under_way_ = 0;  // bytes in pieces
  uint64_t taken_ = 0;
  bool ended_ = false;  // by its sender
  bool ends_ = false;   // by us, behind what is on its way
  bool shut_ = false;   // its receiver was told of the end
  bool dead_ = false;
};

}  // namespace

struct FaultProxy::Connection {
  Connection(rpc::Descriptor from, rpc::Descriptor to, pid_t caller, uint64_t seed, Counts& counts)
      : client(std::move(from)),
        server(std::move(to)),
        caller(caller),
        there(client.get(), server.get(), 2 * seed, counts),
        back(server.get(), client.get(), 2 * seed + 1, counts) {}

  // False where it is lost or over: then it may go.
  bool Serve(const Harms& harms, SteadyTime now) {
    const bool whole = there.Read(harms.there) && back.Read(harms.back) &&
                       there.Write(harms.there, now) && back.Write(harms.back, now);
    if (whole) return !(there.over() && back.over());
    if (there.dead() || back.dead()) {
      // Nor does word of the loss pass.
      there.Die();
      back.Die();
      return true;
    }
    Reset();
    return false;
  }
  void Reset() const {
    ResetWhenClosed(client.get());
    ResetWhenClosed(server.get());
  }
  // One that nothing is wanted of is left out: poll() would not stop telling of its end.
  static pollfd Watched(int socket, bool read, bool write) {
    const int events = (read ? POLLIN : 0) | (write ? POLLOUT : 0);
    return {events == 0 ? -1 : socket, static_cast<short>(events), 0};
  }
  void AddTo(std::vector<pollfd>& watched, const Harms& harms, SteadyTime now) const {
    watched.push_back(
        Watched(client.get(), there.WantsRead(harms.there), back.WantsWrite(harms.back, now)));
    watched.push_back(
        Watched(server.get(), back.WantsRead(harms.back), there.WantsWrite(harms.there, now)));
  }

  rpc::Descriptor client, server;
  const pid_t caller;
  Half there, back;
};

FaultProxy::FaultProxy(const std::string& upstream, uint64_t seed)
    : upstream_port_(PortIn(upstream)),
      seed_(seed),
      listener_(Listen()),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      address_(absl::StrCat("127.0.0.1:", BoundPort(listener_.get()))),
      thread_([this] { Run(); }) {}

FaultProxy::~FaultProxy() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  Wake();
  thread_.join();
}

void FaultProxy::Harm(const Harms& harms, pid_t caller) {
  {
    std::lock_guard lock(mutex_);
    harms_[caller] = harms;
  }
  Wake();
}

void FaultProxy::Heal() {
  {
    std::lock_guard lock(mutex_);
    harms_.clear();
  }
  Wake();
}

void FaultProxy::Cut() {
  {
    std::lock_guard lock(mutex_);
    counts_.cut += connections_.size();
    for (const Connection& connection : connections_) connection.Reset();
    connections_.clear();
  }
  Wake();
}

void FaultProxy::Wake() const { eventfd_write(wake_.get(), 1); }

const FaultProxy::Harms& FaultProxy::HarmsOf(pid_t caller) const {
  static const Harms kNone;
  auto found = harms_.find(caller);
  if (found == harms_.end()) found = harms_.find(kAnybody);
  return found == harms_.end() ? kNone : found->second;
}

void FaultProxy::Run() {
  std::vector<pollfd> watched;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    Accept();
    const SteadyTime now = std::chrono::steady_clock::now();
    connections_.remove_if([&](Connection& one) { return !one.Serve(HarmsOf(one.caller), now); });
    watched.assign({{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}});
    SteadyTime next = SteadyTime::max();
    for (const Connection& one : connections_) {
      const Harms& harms = HarmsOf(one.caller);
      one.AddTo(watched, harms, now);
      next = std::min({next, one.there.Due(harms.there, now), one.back.Due(harms.back, now)});
    }
    lock.unlock();
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - now);
    poll(watched.data(), watched.size(),
         next == SteadyTime::max() ? -1 : static_cast<int>(wait.count()));
    eventfd_t woken;
    eventfd_read(wake_.get(), &woken);
    lock.lock();
  }
}

void FaultProxy::Accept() {
  sockaddr_in peer{};
  socklen_t length = sizeof peer;
  rpc::Descriptor client(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &length,
                                 SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (client.get() < 0) return;
  Wake();  // there may be another one
  const pid_t caller = OwnerOfConnection(ntohs(peer.sin_port), BoundPort(listener_.get()));
  if (HarmsOf(caller).refuse) {
    ++counts_.refused;
    return ResetWhenClosed(client.get());
  }
  rpc::Descriptor server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in to = Loopback(upstream_port_);
  const int failed = connect(server.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
  if (failed != 0 && errno != EINPROGRESS) return ResetWhenClosed(client.get());
  const int yes = 1;
  for (const rpc::Descriptor* end : {&client, &server}) {
    setsockopt(end->get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  const uint64_t number = counts_.connections++;
  connections_.emplace_back(std::move(client), std::move(server), caller, seed_ + number, counts_);
}

}  // namespace setu::test
