// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/server.h"

#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

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
  std::unique_ptr<Server> StartTcp(ServerOptions options) {
    auto listener = Listener::Bind("--listen", "127.0.0.1:0");
    EXPECT_TRUE(listener.ok()) << listener.status();
    auto server = Server::Start(options, {&service_}, *std::move(listener), logger_);
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  std::shared_ptr<grpc::Channel> Dial(const Server& server) {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", server.port()),
                               grpc::InsecureChannelCredentials());
  }
  grpc::Status Describe(const std::shared_ptr<grpc::Channel>& channel, int padding = 0,
                        grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
    grpc::ClientContext context;
    context.set_compression_algorithm(compression);
    worker::v1::DescribeRequest request;
    if (padding > 0) {  // field 15, which nobody knows
      request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
          15, std::string(padding, 'x'));
    }
    worker::v1::DescribeResponse response;
    return worker::v1::WorkerService::NewStub(channel)->Describe(&context, request, &response);
  }

  worker::WorkerService service_{{}, [] {}};
  NullLogger logger_;
};

TEST_F(ServerTest, ServesOverTcpAndInProcess) {
  auto server = StartTcp({});
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
  for (const char* service :
       {kService, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}) {
    EXPECT_NE(std::string(answer.begin(), answer.end()).find(service), std::string::npos);
    EXPECT_NE(google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service),
              nullptr)
        << service << " is on the list, and cannot be called by what the list tells";
  }
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

TEST_F(ServerTest, ItsPortIsTakenUntilShutdown) {
  auto server = StartTcp({});
  const std::string address = absl::StrCat("127.0.0.1:", server->port());
  EXPECT_TRUE(Describe(Dial(*server)).ok());
  EXPECT_EQ(Listener::Bind("--listen", address).status().code(), absl::StatusCode::kUnavailable);
  server->Shutdown(Duration::zero());
  EXPECT_TRUE(Listener::Bind("--listen", address).ok());
}

TEST_F(ServerTest, RefusesMessagesOverTheLimit) {
  auto server = StartTcp({.max_receive_bytes = 1000});
  EXPECT_TRUE(Describe(Dial(*server), 900).ok());
  EXPECT_EQ(Describe(Dial(*server), 1100).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Describe(server->InProcessChannel(), 1100).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// A packed megabyte may be a gigabyte, and gRPC unpacks it first: none is taken, however small.
TEST_F(ServerTest, RefusesPackedMessages) {
  auto server = StartTcp({});
  for (const auto packed : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    const grpc::Status status = Describe(Dial(*server), 100'000, packed);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
  }
  EXPECT_TRUE(Describe(Dial(*server)).ok());
}

TEST_F(ServerTest, ShutdownCancelsStreamsThatDoNotEnd) {
  auto server = StartTcp({});
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

}  // namespace
}  // namespace setu::rpc
