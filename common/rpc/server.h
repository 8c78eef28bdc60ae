// SPDX-License-Identifier: Apache-2.0
// A gRPC server with what every Setu server has: health per service name, reflection, keepalive,
// limits, and a shutdown that ends within its bound.
//
//   SETU_ASSIGN_OR_RETURN(auto listener, Listener::Bind("--listen", "127.0.0.1:0"));
//   SETU_ASSIGN_OR_RETURN(auto server,
//                         Server::Start({}, {&service}, std::move(listener), logger));
//   server->SetServing(true);
//   server->Shutdown(std::chrono::seconds(5));
#ifndef SETU_COMMON_RPC_SERVER_H_
#define SETU_COMMON_RPC_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/logging/logger.h"
#include "common/rpc/acceptor.h"
#include "common/rpc/listener.h"

namespace setu::rpc {

struct ServerOptions {
  int max_receive_bytes = 4 << 20;    // per message
  int max_concurrent_streams = 4096;  // per connection
  bool channelz = false;
};

class Server {
 public:
  // Only in-process. `services` must outlive the server. Not serving, by its health, until told so.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       std::vector<grpc::Service*> services);
  // Also over TCP; errors are those of Acceptor::Start. `logger` must outlive the server.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       std::vector<grpc::Service*> services,
                                                       Listener listener, Logger& logger);
  ~Server();

  int port() const { return port_; }  // 0 in-process
  std::shared_ptr<grpc::Channel> InProcessChannel();
  // grpc.health.v1: the server as a whole ("") and each service name.
  void SetServing(bool serving);
  // Not serving, no new calls; running ones may end within `grace`, then they are cancelled. Blocks
  // until all have ended: every reactor must finish when it is cancelled. May be called again.
  void Shutdown(Duration grace);

 private:
  Server() = default;
  absl::Status BuildAndStart(grpc::ServerBuilder& builder, const ServerOptions& options,
                             const std::vector<grpc::Service*>& services);

  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> service_names_;
  int port_ = 0;
  std::unique_ptr<Acceptor> acceptor_;  // hands connections to server_
};

}  // namespace setu::rpc

#endif  // SETU_COMMON_RPC_SERVER_H_
