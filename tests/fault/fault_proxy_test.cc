// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/fault_proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"

namespace setu::test {
namespace {

using std::chrono::milliseconds;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// One end of a connection.
class End {
 public:
  explicit End(int socket) : socket_(socket) {}

  void Send(const std::string& bytes) const {
    EXPECT_EQ(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // So many bytes, or what came of them until the end, a reset or 20 s without any.
  std::string Take(size_t size) const {
    std::string bytes;
    char piece[4096];
    while (bytes.size() < size && Ready(20'000)) {
      const ssize_t n = recv(socket_.get(), piece, std::min(sizeof piece, size - bytes.size()), 0);
      if (n <= 0) break;
      bytes.append(piece, static_cast<size_t>(n));
    }
    return bytes;
  }
  // What comes next: "bytes", "end", "reset" or, in 20 s, "nothing".
  std::string Next() const {
    if (!Ready(20'000)) return "nothing";
    char byte;
    const ssize_t n = recv(socket_.get(), &byte, 1, MSG_PEEK);
    if (n < 0) return errno == ECONNRESET ? "reset" : "another error";
    return n == 0 ? "end" : "bytes";
  }
  // Something is there by now.
  bool Ready(int wait_ms = 0) const {
    pollfd one{socket_.get(), POLLIN, 0};
    return poll(&one, 1, wait_ms) == 1;
  }
  void Leave() { socket_ = rpc::Descriptor(-1); }

 private:
  rpc::Descriptor socket_;
};

struct Ends {
  End client, server;
};

class FaultProxyTest : public ::testing::Test {
 protected:
  static int Listen() {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in any = Loopback(0);
    EXPECT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
    EXPECT_EQ(listen(listener, 8), 0);
    return listener;
  }
  std::string ListenerAddress() const {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    return absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  static int PortOf(const FaultProxy& proxy) {
    return std::stoi(proxy.address().substr(proxy.address().find(':') + 1));
  }
  static End Connect(const FaultProxy& proxy) {
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in to = Loopback(PortOf(proxy));
    EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return End(client);
  }
  // As gRPC connects: by an IPv6 socket.
  static End ConnectMapped(const FaultProxy& proxy) {
    const int client = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(static_cast<uint16_t>(PortOf(proxy)));
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.sin6_addr);
    EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return End(client);
  }
  // Both ends of a new connection through the proxy.
  Ends Open(const FaultProxy& proxy) const {
    End client = Connect(proxy);
    return {std::move(client), End(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC))};
  }
  Ends Open() const { return Open(proxy_); }

  // Everything that the proxy could do by now for other connections it has done after this.
  void PassesElsewhere() const {
    const Ends other = Open();
    other.client.Send("there");
    EXPECT_EQ(other.server.Take(5), "there");
    other.server.Send("back");
    EXPECT_EQ(other.client.Take(4), "back");
  }

  const FaultProxy::Counts& counts() const { return proxy_.counts(); }

  rpc::Descriptor listener_{Listen()};
  FaultProxy proxy_{ListenerAddress()};
};

TEST_F(FaultProxyTest, PassesBothWaysAndTheEndOfEach) {
  Ends ends = Open();
  ends.client.Send("ping");
  EXPECT_EQ(ends.server.Take(4), "ping");
  ends.client.Leave();
  EXPECT_EQ(ends.server.Next(), "end");
  EXPECT_EQ(counts().passed, 4u);
  EXPECT_EQ(counts().connections, 1u);
}

TEST_F(FaultProxyTest, ResetsWhoConnectsWhereNobodyListens) {
  listener_ = rpc::Descriptor(-1);
  EXPECT_EQ(Connect(proxy_).Next(), "reset");
}

TEST_F(FaultProxyTest, DelaysOneWayAndKeepsItsOrder) {
  proxy_.Harm({.there = {.delay = milliseconds(200)}});
  const Ends ends = Open();
  const auto start = std::chrono::steady_clock::now();
  ends.client.Send("late");
  ends.server.Send("soon");
  EXPECT_EQ(ends.client.Take(4), "soon");
  EXPECT_EQ(ends.server.Take(4), "late");
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(200));
  EXPECT_EQ(counts().delayed, 4u);
  // What follows without a delay does not overtake what has one.
  ends.client.Send("a");
  proxy_.Heal();
  ends.client.Send("b");
  EXPECT_EQ(ends.server.Take(2), "ab");
}

TEST_F(FaultProxyTest, TurnsSingleBitsAsItsSeedSays) {
  const std::string sent(50'000, 'x');
  const auto arrived = [&](uint64_t seed) {
    FaultProxy proxy(ListenerAddress(), seed);
    proxy.Harm({.there = {.flips = 0.01}});
    const Ends ends = Open(proxy);
    ends.client.Send(sent);
    std::string got = ends.server.Take(sent.size());
    uint64_t turned = 0;
    for (const char byte : got) {
      const auto difference = static_cast<unsigned char>(byte ^ 'x');
      EXPECT_LE(std::popcount(difference), 1);
      turned += difference != 0 ? 1 : 0;
    }
    EXPECT_GT(turned, 300u);
    EXPECT_LT(turned, 700u);
    EXPECT_EQ(proxy.counts().flipped, turned);
    return got;
  };
  const std::string first = arrived(7);
  EXPECT_EQ(first.size(), sent.size());
  EXPECT_EQ(arrived(7), first);
  EXPECT_NE(arrived(8), first);
}

TEST_F(FaultProxyTest, EndsAConnectionAfterSoManyBytes) {
  proxy_.Harm({.there = {.end_after = 5}});
  const Ends ends = Open();
  ends.client.Send("abc");
  ends.client.Send("defgh");
  EXPECT_EQ(ends.server.Take(100), "abcde");
  EXPECT_EQ(ends.server.Next(), "end");
  ends.server.Send("the other way goes on");
  EXPECT_EQ(ends.client.Take(21), "the other way goes on");
  EXPECT_EQ(counts().ended, 1u);
}

TEST_F(FaultProxyTest, CutsWhatIsOpenAndNothingLater) {
  const Ends ends = Open();
  ends.client.Send("a");
  EXPECT_EQ(ends.server.Take(1), "a");
  proxy_.Cut();
  EXPECT_EQ(ends.client.Next(), "reset");
  EXPECT_EQ(ends.server.Next(), "reset");
  EXPECT_EQ(counts().cut, 1u);
  PassesElsewhere();
}

TEST_F(FaultProxyTest, HoldsWhatComesUntilItIsHealed) {
  Ends ends = Open();
  proxy_.Harm({.there = {.held = true}});
  ends.client.Send("held");
  ends.server.Send("passes");
  EXPECT_EQ(ends.client.Take(6), "passes");
  ends.client.Leave();
  EXPECT_FALSE(ends.server.Ready());
  proxy_.Heal();
  EXPECT_EQ(ends.server.Take(4), "held");
  EXPECT_EQ(ends.server.Next(), "end");
}

TEST_F(FaultProxyTest, SwallowsBothWaysAndTheEndForEver) {
  Ends ends = Open();
  const FaultProxy::Way gone = {.swallowed = true};
  proxy_.Harm({.there = gone, .back = gone});
  ends.client.Send("never");
  ends.server.Send("arrives");
  Ends later = Open();
  later.client.Send("nor this");
  proxy_.Heal();
  ends.client.Send("either");
  ends.client.Leave();
  PassesElsewhere();
  PassesElsewhere();
  EXPECT_FALSE(ends.server.Ready());
  EXPECT_EQ(counts().swallowed, 26u);
}

TEST_F(FaultProxyTest, RefusesWhoComesAndKeepsWhoIsThere) {
  const Ends ends = Open();
  proxy_.Harm({.refuse = true});
  EXPECT_EQ(Connect(proxy_).Next(), "reset");
  EXPECT_EQ(counts().refused, 1u);
  ends.client.Send("a");
  EXPECT_EQ(ends.server.Take(1), "a");
  proxy_.Heal();
  PassesElsewhere();
}

TEST_F(FaultProxyTest, HarmsTheLinksOfOneProcess) {
  const Ends ends = Open();
  proxy_.Harm({.refuse = true}, /*caller=*/1);
  PassesElsewhere();
  proxy_.Harm({.refuse = true}, getpid());
  EXPECT_EQ(Connect(proxy_).Next(), "reset");
  EXPECT_EQ(ConnectMapped(proxy_).Next(), "reset");
  // What is said of one process holds for it in place of what is said of all.
  proxy_.Harm({.there = {.held = true}});
  proxy_.Harm({}, getpid());
  PassesElsewhere();
}

}  // namespace
}  // namespace setu::test
