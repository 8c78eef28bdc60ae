// SPDX-License-Identifier: Apache-2.0
// A router with --auth-tokens: who is let in, and what becomes of them when the file changes.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <grpc/health/v1/health.grpc.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <set>

#include "setu/v1/cluster.grpc.pb.h"
#include "tests/services/router/tenants_fixture.h"

namespace setu::router {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class AuthTest : public TenantsFixture {
 protected:
  // One message there and one back, whatever the method.
  std::string ListServices() {
    grpc::ClientContext context;
    grpc::GenericStub stub(server_->InProcessChannel());
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(
        &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
    void* tag = nullptr;
    bool ok = false;
    call->StartCall(nullptr);
    EXPECT_TRUE(queue.Next(&tag, &ok));
    grpc::Slice list(std::string("\x3a\x01*"));  // {string list_services = 7;}
    call->Write(grpc::ByteBuffer(&list, 1), nullptr);
    EXPECT_TRUE(queue.Next(&tag, &ok) && ok);
    grpc::ByteBuffer response;
    call->Read(&response, nullptr);
    EXPECT_TRUE(queue.Next(&tag, &ok) && ok);
    grpc::Slice answer;
    EXPECT_TRUE(response.DumpToSingleSlice(&answer).ok());
    return std::string(answer.begin(), answer.end());
  }

  // Every method of every service of ours that this server has: "/setu.v1.Service/Method".
  std::set<std::string> Methods() {
    const std::string list = ListServices();
    std::set<std::string> methods;
    for (size_t at = list.find("setu."); at != std::string::npos; at = list.find("setu.", at + 1)) {
      // {string name = 1;}: its length stands before it.
      const std::string name = list.substr(at, static_cast<unsigned char>(list[at - 1]));
      const auto* service =
          google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
      EXPECT_NE(service, nullptr) << name;
      for (int i = 0; service != nullptr && i < service->method_count(); ++i) {
        methods.insert("/" + name + "/" + service->method(i)->name());
      }
    }
    return methods;
  }

  grpc::Status Call(const std::string& method, const std::optional<std::string>& authorization) {
    grpc::ClientContext context;
    if (authorization) context.AddMetadata("authorization", *authorization);
    grpc::GenericStub stub(server_->InProcessChannel());
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, method, &queue);
    void* tag = nullptr;
    bool ok = false;
    call->StartCall(nullptr);
    EXPECT_TRUE(queue.Next(&tag, &ok));
    grpc::Slice nothing;
    call->WriteLast(grpc::ByteBuffer(&nothing, 1), {}, nullptr);
    EXPECT_TRUE(queue.Next(&tag, &ok));
    grpc::ByteBuffer answer;
    call->Read(&answer, nullptr);
    EXPECT_TRUE(queue.Next(&tag, &ok));
    grpc::Status status;
    call->Finish(&status, nullptr);
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return status;
  }
};

// A method that forgets to ask fails here.
TEST_F(AuthTest, NoMethodAnswersWithoutAToken) {
  StartReady();
  const std::set<std::string> methods = Methods();
  EXPECT_THAT(methods, IsSupersetOf({"/setu.v1.InferenceService/Generate",
                                     "/setu.v1.ClusterService/GetCluster"}));
  const std::vector<std::optional<std::string>> wrongs = {
      std::nullopt,      "Bearer ",     "Bearer alice",     "Bearer alice-tokem",
      "Bearer xx-token", "alice-token", "Basic alice-token"};
  std::set<std::string> answers;
  for (const std::string& method : methods) {
    for (const auto& wrong : wrongs) {
      const grpc::Status status = Call(method, wrong);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
      answers.insert(status.error_message() + status.error_details());
    }
    EXPECT_NE(Call(method, "Bearer alice-token").error_code(), grpc::StatusCode::UNAUTHENTICATED)
        << method;
  }
  EXPECT_EQ(answers.size(), 1u) << "one text, whatever was wrong";
  EXPECT_EQ(callers_->figures().refused, wrongs.size() * methods.size());
  EXPECT_EQ(router_->snapshot().refused_invalid, 1u) << "an empty request, of a known client";
}

TEST_F(AuthTest, HealthNeedsNone) {
  StartReady();
  server_->SetServing(true);
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckResponse health;
  const auto stub = grpc::health::v1::Health::NewStub(server_->InProcessChannel());
  EXPECT_TRUE(stub->Check(&context, {}, &health).ok());
}

TEST_F(AuthTest, AKnownClientIsServedAndAnUnknownOneIsToldThatNothingWasSent) {
  StartReady();
  ExpectWhole(Generate(Request(3), As("alice")), 3);
  const test::Answer refused = Generate(Request(3), As("mallory"));
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(refused.LastIndex(), "-1");
  EXPECT_EQ(router_->snapshot().admitted, 1u);
}

TEST_F(AuthTest, ATokenThatIsTakenOutEndsNothingThatItBegan) {
  StartReady();
  decodes_[0]->Plan({.hang_at = 2});
  std::future<test::Answer> running = GenerateAsync(Request(10), As("alice"));
  decodes_[0]->WaitTokensSent(kCanaryTokens + 2);
  WriteTokens({{"bob", "bob"}, {"carol", "alice"}});
  EXPECT_EQ(Generate(Request(3), As("alice")).status.error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  ExpectWhole(Generate(Request(3), As("carol")), 3);
  decodes_[0]->Restart();  // it goes on there
  ExpectWhole(running.get(), 10);
}

TEST_F(AuthTest, NoTokenReachesTheLogOrTheWorkers) {
  StartReady();
  ExpectWhole(Generate(Request(3), As("alice")), 3);
  Generate(Request(3), As("mallory"));
  EXPECT_TRUE(logger_.lines("-token").empty());
  for (const std::string& header : decodes_[0]->headers("authorization")) EXPECT_EQ(header, "");
  for (const std::string& header : prefills_[0]->headers("authorization")) EXPECT_EQ(header, "");
}

}  // namespace
}  // namespace setu::router
