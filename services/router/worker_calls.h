// SPDX-License-Identifier: Apache-2.0
// The calls that a router makes on workers. gRPC carries them in production; a simulation answers
// them under a clock of its own.
//
//   const std::unique_ptr<WorkerCalls> calls = MakeGrpcWorkerCalls(loop, channels);
//   std::unique_ptr<rpc::ReadableCall> watch = calls->WatchLoad(address, options, events);
//
// On the loop's thread, as all that comes back.
#ifndef SETU_SERVICES_ROUTER_WORKER_CALLS_H_
#define SETU_SERVICES_ROUTER_WORKER_CALLS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/open_call.h"
#include "setu/worker/v1/decode.pb.h"
#include "setu/worker/v1/prefill.pb.h"
#include "setu/worker/v1/worker.pb.h"

namespace setu::rpc {
class ChannelFactory;
class EventLoop;
}  // namespace setu::rpc

namespace setu::router {

class WorkerCalls {
 public:
  using Described = std::function<void(absl::StatusOr<worker::v1::DescribeResponse>)>;

  virtual ~WorkerCalls() = default;
  virtual std::unique_ptr<rpc::OpenCall> Describe(const std::string& address,
                                                  const rpc::CallOptions& options,
                                                  Described done) = 0;
  virtual std::unique_ptr<rpc::ReadableCall> WatchLoad(
      const std::string& address, const rpc::CallOptions& options,
      rpc::StreamEvents<worker::v1::WatchLoadResponse> events) = 0;
  virtual std::unique_ptr<rpc::DuplexCall<worker::v1::DecodeRequest>> Decode(
      const std::string& address, const rpc::CallOptions& options,
      rpc::StreamEvents<worker::v1::DecodeResponse> events) = 0;
  virtual std::unique_ptr<rpc::ReadableCall> Prefill(
      const std::string& address, const rpc::CallOptions& options,
      const worker::v1::PrefillRequest& request,
      rpc::StreamEvents<worker::v1::PrefillResponse> events) = 0;
};

// Both must outlive it and every call.
std::unique_ptr<WorkerCalls> MakeGrpcWorkerCalls(rpc::EventLoop& loop,
                                                 rpc::ChannelFactory& channels);

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_WORKER_CALLS_H_
