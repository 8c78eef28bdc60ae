// SPDX-License-Identifier: Apache-2.0
// From an address to a channel. Behind an interface so that a test can join router and workers in
// one process over gRPC's in-process transport: the same code on every arrow, without sockets.
#ifndef SETU_COMMON_RPC_CHANNEL_FACTORY_H_
#define SETU_COMMON_RPC_CHANNEL_FACTORY_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace setu::rpc {

class ChannelFactory {
 public:
  virtual ~ChannelFactory() = default;
  // Never null; an address where nobody listens gives a channel that fails its calls. Any thread.
  virtual std::shared_ptr<grpc::Channel> Connect(const std::string& address) = 0;
};

// Plain TCP: one channel per address, whose connection no other factory's channel shares; keepalive
// every 10 s, reconnect back-off at most 2 s, messages up to 64 MiB (KV frames).
std::unique_ptr<ChannelFactory> MakeTcpChannelFactory();

}  // namespace setu::rpc

#endif  // SETU_COMMON_RPC_CHANNEL_FACTORY_H_
