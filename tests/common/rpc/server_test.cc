// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/server.h"

#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <future>

#include "absl/strings/str_cat.h"
#include "common/worker/worker_service.h"
#include "setu/worker/v1/worker.grpc.pb.h"

namespace setu::rpc {
namespace {

constexpr char kService[] = "setu.worker.v1.WorkerService";

// grpc.health.v1.Health/Check by hand: HealthCheckRequest {string service = 1;} to
// HealthCheckResponse {ServingStatus status = 1;}. The status' number, or minus the error code.
int Health(const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  grpc::Slice bytes(service.empty()
                        ? std::string()
                        : absl::StrCat("\x0a", std::string(1, service.size()), service));
  grpc::ByteBuffer request(&bytes, 1), response;
  grpc::ClientContext context;
  std::promise<grpc::Status> done;
  grpc::GenericStub(channel).UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &request,
                                       &response,
                                       [&](grpc::Status status) { done.set_value(status); });
  const grpc::Status status = done.get_future().get();
  if (!status.ok()) return -status.error_code();
  grpc::Slice answer;
  EXPECT_TRUE(response.TrySingleSlice(&answer).ok());
  return answer.size() == 2 ? answer.begin()[1] : 0;
}

class ServerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Server> Start(ServerOptions options) {
    auto server = Server::Start(options, {&service_});
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  std::shared_ptr<grpc::Channel> Dial(const Server& server) {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", server.port()),
                               grpc::InsecureChannelCredentials());
  }
  grpc::Status Describe(const std::shared_ptr<grpc::Channel>& channel, int padding = 0) {
    grpc::ClientContext context;
    worker::v1::DescribeRequest request;
    if (padding > 0) {  // field 15, which nobody knows
      request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
          15, std::string(padding, 'x'));
    }
    worker::v1::DescribeResponse response;
    return worker::v1::WorkerService::NewStub(channel)->Describe(&context, request, &response);
  }

  worker::WorkerService service_{{}, [] {}};
};

TEST_F(ServerTest, ServesOverTcpAndInProcess) {
  auto server = Start({.listen = "127.0.0.1:0"});
  EXPECT_GT(server->port(), 0);
  EXPECT_TRUE(Describe(Dial(*server)).ok());
  EXPECT_TRUE(Describe(server->InProcessChannel()).ok());
}

TEST_F(ServerTest, NeedsNoPortInProcess) {
  auto server = Start({});
  EXPECT_EQ(server->port(), 0);
  EXPECT_TRUE(Describe(server->InProcessChannel()).ok());
}

TEST_F(ServerTest, HealthNamesEveryService) {
  auto server = Start({});
  auto channel = server->InProcessChannel();
  EXPECT_EQ(Health(channel, ""), 2);  // NOT_SERVING
  EXPECT_EQ(Health(channel, kService), 2);
  EXPECT_EQ(Health(channel, "setu.v1.Nobody"), -grpc::StatusCode::NOT_FOUND);
  server->SetServing(true);
  EXPECT_EQ(Health(channel, ""), 1);  // SERVING
  EXPECT_EQ(Health(channel, kService), 1);
  server->SetServing(false);
  EXPECT_EQ(Health(channel, kService), 2);
}

TEST_F(ServerTest, ReflectsItsServices) {
  auto server = Start({});
  grpc::ClientContext context;
  grpc::ByteBuffer response;
  auto stub = grpc::GenericStub(server->InProcessChannel());
  grpc::CompletionQueue queue;
  auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  grpc::Slice list(std::string("\x3a\x01*"));  // {string list_services = 7;}
  call->Write(grpc::ByteBuffer(&list, 1), nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  call->Read(&response, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  grpc::Slice answer;
  ASSERT_TRUE(response.DumpToSingleSlice(&answer).ok());
  EXPECT_NE(std::string(answer.begin(), answer.end()).find(kService), std::string::npos);
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

TEST_F(ServerTest, ATakenPortIsAnError) {
  auto first = Start({.listen = "127.0.0.1:0"});
  const std::string address = absl::StrCat("127.0.0.1:", first->port());
  auto second = Server::Start({.listen = address}, {&service_});
  ASSERT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find(address), std::string::npos) << second.status();
}

TEST_F(ServerTest, RefusesMessagesOverTheLimit) {
  auto server = Start({.listen = "127.0.0.1:0", .max_receive_bytes = 1000});
  EXPECT_TRUE(Describe(Dial(*server), 900).ok());
  EXPECT_EQ(Describe(Dial(*server), 1100).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Describe(server->InProcessChannel(), 1100).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ServerTest, ShutdownCancelsStreamsThatDoNotEnd) {
  auto server = Start({.listen = "127.0.0.1:0"});
  service_.Publish({});
  grpc::ClientContext context;
  auto watch = worker::v1::WorkerService::NewStub(Dial(*server))->WatchLoad(&context, {});
  worker::v1::WatchLoadResponse report;
  ASSERT_TRUE(watch->Read(&report));
  server->Shutdown(std::chrono::milliseconds(1));
  while (watch->Read(&report)) {
  }
  EXPECT_FALSE(watch->Finish().ok());
  server->Shutdown(Duration::zero());  // a second one has nothing to do
}

TEST(Server, RefusesAnAddressThatIsNoHostAndPort) {
  for (const char* listen : {"127.0.0.1:99999", "127.0.0.1:", "127.0.0.1", ":80", "localhost:x"}) {
    const auto server = Server::Start({.listen = listen}, {});
    EXPECT_TRUE(absl::IsInvalidArgument(server.status())) << listen;
    EXPECT_NE(server.status().message().find(listen), std::string::npos);
  }
}

TEST(Server, TakesAsManyDescriptorsAsItMay) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = std::min<rlim_t>(256, before.rlim_max);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const auto server = Server::Start({.listen = "127.0.0.1:0"}, {});
  ASSERT_TRUE(server.ok()) << server.status();
  rlimit now{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, before.rlim_max);
}

}  // namespace
}  // namespace setu::rpc
