// SPDX-License-Identifier: Apache-2.0
// Answers of a router as streams whose messages arrive on an event loop: thousands at once on a few
// connections, with no thread of their own.
//
//   LoadClient client("127.0.0.1:50051", LoadClient::ConnectionsFor(10'000));
//   client.WaitConnected(std::chrono::seconds(5));
//   auto stream = client.Generate(loop, request, token, deadline, {.read = ..., .done = ...});
//   stream->Read();
#ifndef SETU_SERVICES_CLI_LOAD_LOAD_CLIENT_H_
#define SETU_SERVICES_CLI_LOAD_LOAD_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/rpc/channel_factory.h"
#include "common/rpc/client_stream.h"
#include "common/rpc/event_loop.h"
#include "setu/v1/inference.grpc.pb.h"

namespace setu::cli {

class LoadClient {
 public:
  using Stream = rpc::ReadStream<v1::GenerateResponse>;
  using Events = rpc::StreamEvents<v1::GenerateResponse>;

  // A router takes 4,096 streams on a connection; a quarter of that keeps one from waiting for
  // another's bytes.
  static int ConnectionsFor(int64_t streams);

  LoadClient(const std::string& address, int connections);

  // So that the first requests do not pay for it. A router that is not there shows in the calls.
  void WaitConnected(Duration limit);
  // On the next connection in turn, with that bearer token where it is not empty; `deadline` is of
  // the whole call, from now.
  std::unique_ptr<Stream> Generate(rpc::EventLoop& loop, const v1::GenerateRequest& request,
                                   const std::string& token, Duration deadline, Events events);

 private:
  struct Connection {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v1::InferenceService::Stub> stub;
  };
  std::vector<Connection> connections_;
  size_t next_ = 0;
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_LOAD_CLIENT_H_
