// SPDX-License-Identifier: Apache-2.0
// A router's calls on workers, through pipes.
#ifndef SETU_TESTS_SIMULATOR_ROUTER_CALLS_H_
#define SETU_TESTS_SIMULATOR_ROUTER_CALLS_H_

#include <memory>
#include <string>

#include "common/rpc/event_loop.h"
#include "services/router/worker_calls.h"
#include "tests/simulator/network.h"
#include "tests/simulator/nodes.h"

namespace setu::simulator {

class RouterCalls final : public router::WorkerCalls {
 public:
  // All of it outlives this and its calls.
  RouterCalls(Network& network, Node& router, rpc::EventLoop& loop, const Nodes& nodes)
      : network_(network), router_(router), loop_(loop), nodes_(nodes) {}

  std::unique_ptr<rpc::OpenCall> Describe(const std::string& address,
                                          const rpc::CallOptions& options, Described done) override;
  std::unique_ptr<rpc::ReadableCall> WatchLoad(
      const std::string& address, const rpc::CallOptions& options,
      rpc::StreamEvents<worker::v1::WatchLoadResponse> events) override;
  std::unique_ptr<rpc::DuplexCall<worker::v1::DecodeRequest>> Decode(
      const std::string& address, const rpc::CallOptions& options,
      rpc::StreamEvents<worker::v1::DecodeResponse> events) override;
  std::unique_ptr<rpc::ReadableCall> Prefill(
      const std::string& address, const rpc::CallOptions& options,
      const worker::v1::PrefillRequest& request,
      rpc::StreamEvents<worker::v1::PrefillResponse> events) override;

 private:
  Network& network_;
  Node& router_;
  rpc::EventLoop& loop_;
  const Nodes& nodes_;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_ROUTER_CALLS_H_
