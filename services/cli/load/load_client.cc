// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/load_client.h"

#include <utility>

#include "common/rpc/bearer_token.h"

namespace setu::cli {

int LoadClient::ConnectionsFor(int64_t streams) {
  constexpr int64_t kStreamsEach = 1024;
  return static_cast<int>((streams + kStreamsEach - 1) / kStreamsEach);
}

LoadClient::LoadClient(const std::string& address, int connections) {
  for (int i = 0; i < connections; ++i) {
    // A factory has connections of its own: one for all would have one for the address.
    std::shared_ptr<grpc::Channel> channel = rpc::MakeTcpChannelFactory()->Connect(address);
    auto stub = v1::InferenceService::NewStub(channel);
    connections_.push_back({std::move(channel), std::move(stub)});
  }
}

void LoadClient::WaitConnected(Duration limit) {
  const auto deadline = std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::microseconds>(limit);
  for (const Connection& connection : connections_) connection.channel->GetState(true);
  for (const Connection& connection : connections_) connection.channel->WaitForConnected(deadline);
}

std::unique_ptr<LoadClient::Stream> LoadClient::Generate(rpc::EventLoop& loop,
                                                         const v1::GenerateRequest& request,
                                                         const std::string& token,
                                                         Duration deadline, Events events) {
  v1::InferenceService::Stub& stub = *connections_[next_].stub;
  next_ = (next_ + 1) % connections_.size();
  const rpc::CallOptions options{.deadline = loop.clock().Now() + deadline, .metadata = {}};
  return std::make_unique<Stream>(loop, options, std::move(events),
                                  [&](grpc::ClientContext* context, Stream::Reactor* reactor) {
                                    rpc::Authorize(*context, token);
                                    stub.async()->Generate(context, &request, reactor);
                                  });
}

}  // namespace setu::cli
