// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/listener.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace setu::rpc {
namespace {

using ::testing::HasSubstr;

Listener Bound(const std::string& address) {
  auto listener = Listener::Bind("--listen", address);
  EXPECT_TRUE(listener.ok()) << listener.status();
  return *std::move(listener);
}

std::string At(const Listener& listener) { return absl::StrCat("127.0.0.1:", listener.port()); }

// 0, or what connecting failed with.
int Connect(int port) {
  const Descriptor client(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* to = reinterpret_cast<const sockaddr*>(&address);
  return connect(client.get(), to, sizeof address) == 0 ? 0 : errno;
}

TEST(Listener, APortIsTakenFromTheStartAndReachedWhenItListens) {
  Listener listener = Bound("127.0.0.1:0");
  ASSERT_GT(listener.port(), 0);
  const auto second = Listener::Bind("--metrics-listen", At(listener));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Connect(listener.port()), ECONNREFUSED);
  EXPECT_TRUE(listener.Listen().ok());
  EXPECT_EQ(Connect(listener.port()), 0);
  EXPECT_FALSE(Listener::Bind("--listen", At(listener)).ok());
}

TEST(Listener, SaysWhoTookItAndWhatToDo) {
  const Listener first = Bound("127.0.0.1:0");
  EXPECT_EQ(
      Listener::Bind("--listen", At(first)).status().message(),
      absl::StrCat("cannot listen on ", At(first),
                   " (--listen): Address already in use; stop who uses it, or choose another"));
  EXPECT_THAT(std::string(Listener::Bind("--listen", "192.0.2.1:80").status().message()),
              HasSubstr("192.0.2.1:80 (--listen): Cannot assign requested address; choose an "
                        "address of this machine"));
  EXPECT_THAT(std::string(Listener::Bind("--listen", "nobody.invalid:80").status().message()),
              HasSubstr("nobody.invalid:80 (--listen): "));
}

TEST(Listener, RefusesAnAddressThatIsNoHostAndPort) {
  for (const char* listen : {"127.0.0.1:99999", "127.0.0.1:", "127.0.0.1", ":80", "localhost:x"}) {
    const auto listener = Listener::Bind("--listen", listen);
    EXPECT_TRUE(absl::IsInvalidArgument(listener.status())) << listen;
    EXPECT_THAT(std::string(listener.status().message()),
                HasSubstr(absl::StrCat("--listen is '", listen, "'; it must be HOST:PORT")));
  }
}

TEST(Listener, IsFreeAgainWithoutItsOwnerAlsoWhileOldConnectionsLinger) {
  Listener listener = Bound("127.0.0.1:0");
  const std::string address = At(listener);
  ASSERT_TRUE(listener.Listen().ok());
  {
    const Descriptor client(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in to{};
    socklen_t length = sizeof to;
    getsockname(listener.sockets()[0].get(), reinterpret_cast<sockaddr*>(&to), &length);
    ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&to), length), 0);
    // The side that closes first keeps the port in TIME_WAIT for a minute.
    Descriptor server(accept(listener.sockets()[0].get(), nullptr, nullptr));
    ASSERT_GE(server.get(), 0);
    server = Descriptor(-1);
    char byte = 0;
    EXPECT_EQ(read(client.get(), &byte, 1), 0);
  }
  listener = Bound("127.0.0.1:0");
  Listener again = Bound(address);
  EXPECT_TRUE(again.Listen().ok());
  EXPECT_EQ(Connect(again.port()), 0);
}

TEST(Listener, TwoThatBoundOverOldConnectionsLearnOfEachOtherWhenTheyListen) {
  // As in the test before, both may take the port; the one that listens first has it.
  Listener first = Bound("127.0.0.1:0");
  const std::string address = At(first);
  const int yes = 1;
  ASSERT_EQ(setsockopt(first.sockets()[0].get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
  Listener second = Bound(address);
  EXPECT_TRUE(first.Listen().ok());
  const absl::Status status = second.Listen();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(address + " (--listen)"));
}

TEST(Listener, ANameIsBoundOnAllItsAddresses) {
  Listener listener = Bound("localhost:0");
  ASSERT_TRUE(listener.Listen().ok());
  EXPECT_EQ(Connect(listener.port()), 0);
  Listener all = Bound("[::]:0");
  ASSERT_TRUE(all.Listen().ok());
  EXPECT_EQ(Connect(all.port()), 0) << "IPv4 too";
}

}  // namespace
}  // namespace setu::rpc
