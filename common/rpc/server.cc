// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/server.h"

#include <grpc/health/v1/health.pb.h>
#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>
#include <grpcpp/impl/server_initializer.h>

#include <chrono>
#include <mutex>
#include <utility>

#include "common/base/status_macros.h"

namespace setu::rpc {
namespace {

// Peers ping every 10 s; a little less is permitted, because their timer and ours differ.
constexpr int kMinPingIntervalMs = 9'000;
constexpr int kOwnPingIntervalMs = 20'000;
constexpr int kPingTimeoutMs = 10'000;
// A connection that does not speak HTTP/2 by then is closed.
constexpr int kHandshakeTimeoutMs = 10'000;

// Reads the names of all registered services while the server is built: the health service must
// know each, and gRPC tells them to plugins only.
class ServiceNames final : public grpc::ServerBuilderOption {
 public:
  explicit ServiceNames(std::vector<std::string>* names) : names_(names) {}
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    plugins->push_back(std::make_unique<Plugin>(names_));
  }

 private:
  class Plugin final : public grpc::ServerBuilderPlugin {
   public:
    explicit Plugin(std::vector<std::string>* names) : names_(names) {}
    std::string name() override { return "setu_service_names"; }
    void InitServer(grpc::ServerInitializer*) override {}
    void Finish(grpc::ServerInitializer* server) override { *names_ = *server->GetServiceList(); }
    void ChangeArguments(const std::string&, void*) override {}

   private:
    std::vector<std::string>* const names_;
  };
  std::vector<std::string>* const names_;
};

// gRPC keeps these switches per process; turning them on twice is harmless, at the same time not.
void EnableHealthAndReflection() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    // gRPC's health service has no description of its own in the process: reflection finds ours.
    google::protobuf::LinkMessageReflection<grpc::health::v1::HealthCheckRequest>();
  });
}

void EnableChannelz() {
  static std::once_flag once;
  std::call_once(once, [] { grpc::channelz::experimental::InitChannelzService(); });
}

void Configure(const ServerOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(options.max_receive_bytes);
  // gRPC unpacks a message before it looks at its size: a megabyte may become a gigabyte.
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_concurrent_streams);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kMinPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kOwnPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, options.channelz ? 1 : 0);
}

}  // namespace

absl::Status Server::BuildAndStart(grpc::ServerBuilder& builder, const ServerOptions& options,
                                   const std::vector<grpc::Service*>& services) {
  EnableHealthAndReflection();
  if (options.channelz) EnableChannelz();
  Configure(options, builder);
  for (grpc::Service* service : services) builder.RegisterService(service);
  builder.SetOption(std::make_unique<ServiceNames>(&service_names_));
  server_ = builder.BuildAndStart();
  if (server_ == nullptr)
    return absl::InternalError("gRPC cannot start a server; its log says why");
  SetServing(false);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      std::vector<grpc::Service*> services) {
  auto server = std::unique_ptr<Server>(new Server());
  grpc::ServerBuilder builder;
  SETU_RETURN_IF_ERROR(server->BuildAndStart(builder, options, services));
  return server;
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      std::vector<grpc::Service*> services,
                                                      Listener listener, Logger& logger) {
  using Connections = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  auto server = std::unique_ptr<Server>(new Server());
  grpc::ServerBuilder builder;
  std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> connections =
      builder.experimental().AddExternalConnectionAcceptor(Connections::FROM_FD,
                                                           grpc::InsecureServerCredentials());
  SETU_RETURN_IF_ERROR(server->BuildAndStart(builder, options, services));
  server->port_ = listener.port();
  SETU_ASSIGN_OR_RETURN(
      server->acceptor_,
      Acceptor::Start(std::move(listener), logger, [connections](Descriptor connection) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
        parameters.fd = connection.Release();
        connections->HandleNewConnection(&parameters);
      }));
  return server;
}

Server::~Server() {
  if (server_ != nullptr) Shutdown(Duration::zero());
}

std::shared_ptr<grpc::Channel> Server::InProcessChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return server_->InProcessChannel(arguments);
}

void Server::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  health->SetServingStatus("", serving);
  for (const std::string& name : service_names_) health->SetServingStatus(name, serving);
}

void Server::Shutdown(Duration grace) {
  SetServing(false);
  acceptor_.reset();
  server_->Shutdown(std::chrono::system_clock::now() +
                    std::chrono::duration_cast<std::chrono::system_clock::duration>(grace));
}

}  // namespace setu::rpc
