// SPDX-License-Identifier: Apache-2.0
// Joins servers of one process by gRPC's in-process transport, under addresses of the test's own.
//
//   InProcessChannels channels;
//   channels.Add("decode-0", *server);
//   channels.Connect("decode-0");   // any other address: a channel whose calls are UNAVAILABLE
#ifndef SETU_TESTS_SUPPORT_IN_PROCESS_CHANNELS_H_
#define SETU_TESTS_SUPPORT_IN_PROCESS_CHANNELS_H_

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/rpc/channel_factory.h"
#include "common/rpc/server.h"

namespace setu::testing {

class InProcessChannels final : public rpc::ChannelFactory {
 public:
  // Replaces what stood at the address. The server must outlive the calls made to it.
  void Add(const std::string& address, rpc::Server& server) {
    std::lock_guard lock(mutex_);
    channels_[address] = server.InProcessChannel();
  }
  void Remove(const std::string& address) {
    std::lock_guard lock(mutex_);
    channels_.erase(address);
  }

  std::shared_ptr<grpc::Channel> Connect(const std::string& address) override {
    std::lock_guard lock(mutex_);
    auto found = channels_.find(address);
    if (found != channels_.end()) return found->second;
    return grpc::CreateChannel("unix:/nobody/listens/here", grpc::InsecureChannelCredentials());
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
};

}  // namespace setu::testing

#endif  // SETU_TESTS_SUPPORT_IN_PROCESS_CHANNELS_H_
