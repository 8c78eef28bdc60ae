// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/channel_factory.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/server.h"
#include "common/worker/worker_service.h"

namespace setu::rpc {
namespace {

grpc::Status Describe(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  worker::v1::DescribeResponse response;
  return worker::v1::WorkerService::NewStub(channel)->Describe(&context, {}, &response);
}

TEST(ChannelFactoryTest, ReachesAServerByItsAddress) {
  worker::WorkerService service({}, [] {});
  auto listener = Listener::Bind("--listen", "127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  NullLogger logger;
  auto server = Server::Start({}, {&service}, *std::move(listener), logger);
  ASSERT_TRUE(server.ok()) << server.status();
  auto factory = MakeTcpChannelFactory();
  EXPECT_TRUE(Describe(factory->Connect(absl::StrCat("127.0.0.1:", (*server)->port()))).ok());
}

TEST(ChannelFactoryTest, OneAddressHasOneChannel) {
  auto factory = MakeTcpChannelFactory();
  auto channel = factory->Connect("127.0.0.1:1");
  EXPECT_EQ(factory->Connect("127.0.0.1:1"), channel);
  EXPECT_NE(factory->Connect("127.0.0.1:2"), channel);
}

TEST(ChannelFactoryTest, CallsToNobodyFail) {
  auto factory = MakeTcpChannelFactory();
  EXPECT_EQ(Describe(factory->Connect("127.0.0.1:1")).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Describe(factory->Connect("no address")).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(ChannelFactoryTest, ForgetsTheAddressesUsedLongestAgo) {
  auto factory = MakeTcpChannelFactory();
  std::weak_ptr<grpc::Channel> old = factory->Connect("127.0.0.1:1");
  std::weak_ptr<grpc::Channel> kept = factory->Connect("127.0.0.1:2");
  for (int port = 3; port < 400; ++port) {
    factory->Connect(absl::StrCat("127.0.0.1:", port));
    factory->Connect("127.0.0.1:2");
  }
  EXPECT_TRUE(old.expired());
  EXPECT_FALSE(kept.expired());
}

}  // namespace
}  // namespace setu::rpc
