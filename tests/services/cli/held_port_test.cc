// SPDX-License-Identifier: Apache-2.0
#include "services/cli/held_port.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/metrics/exposer.h"
#include "common/rpc/listener.h"

namespace setu::cli {
namespace {

std::string At(const HeldPort& port) { return absl::StrCat("127.0.0.1:", port.number()); }

bool Reaches(int port) {
  rpc::Descriptor client(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  return connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
}

TEST(HeldPort, IsAnotherEachTime) {
  std::vector<HeldPort> held;
  std::set<int> numbers;
  for (int i = 0; i < 100; ++i) {
    auto port = HeldPort::Take();
    ASSERT_TRUE(port.ok()) << port.status();
    numbers.insert(port->number());
    held.push_back(*std::move(port));
  }
  EXPECT_EQ(numbers.size(), held.size());
}

TEST(HeldPort, IsForAListenerAndForTheNext) {
  const auto port = HeldPort::Take();
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_FALSE(Reaches(port->number()));
  for (int run = 0; run < 2; ++run) {
    auto listener = rpc::Listener::Bind("--listen", At(*port));
    ASSERT_TRUE(listener.ok()) << listener.status();
    ASSERT_TRUE(listener->Listen().ok());
    EXPECT_TRUE(Reaches(port->number()));
  }
}

TEST(HeldPort, IsForAnExposer) {
  const auto port = HeldPort::Take();
  ASSERT_TRUE(port.ok()) << port.status();
  const auto exposer = metrics::Exposer::Start(At(*port), "model", "router", [](auto&) {});
  EXPECT_TRUE(exposer.ok()) << exposer.status();
  EXPECT_TRUE(Reaches(port->number()));
}

// What the system did not know to be held, another process would be given in its place.
TEST(HeldPort, IsGivenToNobodyElse) {
  const auto port = HeldPort::Take();
  ASSERT_TRUE(port.ok()) << port.status();
  rpc::Descriptor other(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(port->number()));
  EXPECT_NE(bind(other.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  EXPECT_EQ(errno, EADDRINUSE);
}

}  // namespace
}  // namespace setu::cli
