// SPDX-License-Identifier: Apache-2.0
#include "tests/support/in_process_network.h"

namespace setu::test {

void InProcessNetwork::Put(const std::string& address, rpc::Server* server) {
  std::lock_guard lock(mutex_);
  servers_[address] = server;
}

void InProcessNetwork::TakeOff(const std::string& address) {
  std::lock_guard lock(mutex_);
  servers_.erase(address);
}

std::shared_ptr<grpc::Channel> InProcessNetwork::Connect(const std::string& address) {
  std::lock_guard lock(mutex_);
  const auto server = servers_.find(address);
  if (server != servers_.end()) return server->second->InProcessChannel();
  // Nobody can listen there: its calls fail as those to a dead process do.
  return grpc::CreateChannel("unix:/nonexistent/setu", grpc::InsecureChannelCredentials());
}

}  // namespace setu::test
