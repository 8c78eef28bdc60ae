// SPDX-License-Identifier: Apache-2.0
// One Generate call on the server's side: the sink of its request's flow. gRPC's callbacks only
// post to the router's loop; everything else happens there. Frees itself after gRPC's OnDone.
#ifndef SETU_SERVICES_ROUTER_GENERATE_SERVICE_H_
#define SETU_SERVICES_ROUTER_GENERATE_SERVICE_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "common/rpc/event_loop.h"
#include "services/router/client_sink.h"
#include "services/router/request_flow.h"

namespace setu::router {

class Router;

std::string BytesOf(const grpc::ByteBuffer& buffer);
grpc::ByteBuffer BufferOf(const std::string& bytes);

class GenerateCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public ClientSink {
 public:
  // Hands the request to the router; the reactor is gRPC's from here on.
  static GenerateCall* Start(Router& router, grpc::CallbackServerContext& context,
                             const grpc::ByteBuffer& request);

  void Send(const setu::v1::GenerateResponse& response) override;
  void End(const FlowEnd& end) override;

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // A message on its way, and which tokens it carries.
  struct Outgoing {
    grpc::ByteBuffer bytes;
    uint32_t choice = 0;
    std::optional<int32_t> next_index;  // absent: none
  };

  GenerateCall(rpc::EventLoop& loop, grpc::CallbackServerContext& context);
  void Admitted(const std::shared_ptr<RequestFlow>& flow);
  void Written(bool ok);
  void Cancelled();
  void WriteNext();
  void FinishNow();

  rpc::EventLoop& loop_;
  grpc::CallbackServerContext& context_;
  std::shared_ptr<GenerateCall> self_;  // until OnDone
  std::weak_ptr<RequestFlow> flow_;
  std::deque<Outgoing> queue_;  // the first is being written
  std::optional<FlowEnd> end_;
  std::optional<rpc::EventLoop::Timer> last_moment_;  // for what waits behind a stalled client
  bool cancelled_ = false;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_GENERATE_SERVICE_H_
