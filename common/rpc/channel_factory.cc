// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/channel_factory.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace setu::rpc {
namespace {

// Addresses that a process talks to at the same time are its cluster's; those of workers long gone
// must not pile up.
constexpr size_t kMaxChannels = 256;

grpc::ChannelArguments TcpArguments() {
  grpc::ChannelArguments arguments;
  // Else all channels of a process to an address share one connection, whoever made them.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2'000);  // how long one attempt may take
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetMaxReceiveMessageSize(64 << 20);
  arguments.SetMaxSendMessageSize(64 << 20);
  return arguments;
}

class TcpChannelFactory final : public ChannelFactory {
 public:
  std::shared_ptr<grpc::Channel> Connect(const std::string& address) override {
    std::lock_guard lock(mutex_);
    Entry& entry = channels_[address];
    entry.last_use = ++uses_;
    if (entry.channel == nullptr) {
      entry.channel =
          grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), TcpArguments());
      if (channels_.size() > kMaxChannels) ForgetOldest();
    }
    return entry.channel;
  }

 private:
  struct Entry {
    std::shared_ptr<grpc::Channel> channel;
    uint64_t last_use = 0;
  };

  // Calls that run on the channel keep it until they end.
  void ForgetOldest() {
    channels_.erase(std::min_element(channels_.begin(), channels_.end(), [](auto& a, auto& b) {
      return a.second.last_use < b.second.last_use;
    }));
  }

  std::mutex mutex_;
  std::unordered_map<std::string, Entry> channels_;
  uint64_t uses_ = 0;
};

}  // namespace

std::unique_ptr<ChannelFactory> MakeTcpChannelFactory() {
  return std::make_unique<TcpChannelFactory>();
}

}  // namespace setu::rpc
