// SPDX-License-Identifier: Apache-2.0
// Addresses of one test's servers, joined by gRPC's in-process transport: no sockets, no ports.
#ifndef SETU_TESTS_SUPPORT_IN_PROCESS_NETWORK_H_
#define SETU_TESTS_SUPPORT_IN_PROCESS_NETWORK_H_

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/rpc/channel_factory.h"
#include "common/rpc/server.h"

namespace setu::test {

class InProcessNetwork final : public rpc::ChannelFactory {
 public:
  // The server must be taken off before it dies.
  void Put(const std::string& address, rpc::Server* server);
  void TakeOff(const std::string& address);

  std::shared_ptr<grpc::Channel> Connect(const std::string& address) override;

 private:
  std::mutex mutex_;
  std::map<std::string, rpc::Server*> servers_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_IN_PROCESS_NETWORK_H_
