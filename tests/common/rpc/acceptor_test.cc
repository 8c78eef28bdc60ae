// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/acceptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <future>

#include "tests/common/rpc/connect.h"

namespace setu::rpc {
namespace {

TEST(Acceptor, HandsOverConnectionsThatDoNotBlockAndDoNotDelay) {
  auto listener = Listener::Bind("--listen", "127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  const int port = listener->port();
  NullLogger logger;
  std::promise<Descriptor> taken;
  const auto acceptor = Acceptor::Start(*std::move(listener), logger, [&](Descriptor connection) {
    taken.set_value(std::move(connection));
  });
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  const Descriptor client = Connect(port);
  const Descriptor connection = taken.get_future().get();
  EXPECT_NE(fcntl(connection.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(connection.get(), F_GETFD) & FD_CLOEXEC, 0);
  for (const int option : {TCP_NODELAY, TCP_USER_TIMEOUT}) {
    int value = 0;
    socklen_t length = sizeof value;
    ASSERT_EQ(getsockopt(connection.get(), IPPROTO_TCP, option, &value, &length), 0);
    EXPECT_NE(value, 0) << option;
  }
}

TEST(Acceptor, TakesAsManyDescriptorsAsItMay) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = std::min<rlim_t>(256, before.rlim_max);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  auto listener = Listener::Bind("--listen", "127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  NullLogger logger;
  const auto acceptor = Acceptor::Start(*std::move(listener), logger, [](Descriptor) {});
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  rlimit now{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, before.rlim_max);
}

}  // namespace
}  // namespace setu::rpc
