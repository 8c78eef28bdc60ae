// SPDX-License-Identifier: Apache-2.0
#include "services/router/worker_calls.h"

#include <utility>

#include "common/rpc/channel_factory.h"
#include "common/rpc/client_stream.h"
#include "common/rpc/event_loop.h"
#include "setu/worker/v1/decode.grpc.pb.h"
#include "setu/worker/v1/prefill.grpc.pb.h"
#include "setu/worker/v1/worker.grpc.pb.h"

namespace setu::router {
namespace {

namespace v1 = worker::v1;

// A call keeps its channel, and needs its stub for the start alone.
class GrpcWorkerCalls final : public WorkerCalls {
 public:
  GrpcWorkerCalls(rpc::EventLoop& loop, rpc::ChannelFactory& channels)
      : loop_(loop), channels_(channels) {}

  std::unique_ptr<rpc::OpenCall> Describe(const std::string& address,
                                          const rpc::CallOptions& options,
                                          Described done) override {
    using Call = rpc::UnaryCall<v1::DescribeResponse>;
    const auto stub = v1::WorkerService::NewStub(channels_.Connect(address));
    const v1::DescribeRequest request;
    return std::make_unique<Call>(
        loop_, options, std::move(done),
        [&](grpc::ClientContext* context, v1::DescribeResponse* response, Call::Reactor* reactor) {
          stub->async()->Describe(context, &request, response, reactor);
        });
  }

  std::unique_ptr<rpc::ReadableCall> WatchLoad(
      const std::string& address, const rpc::CallOptions& options,
      rpc::StreamEvents<v1::WatchLoadResponse> events) override {
    using Call = rpc::ReadStream<v1::WatchLoadResponse>;
    const auto stub = v1::WorkerService::NewStub(channels_.Connect(address));
    const v1::WatchLoadRequest request;
    return std::make_unique<Call>(loop_, options, std::move(events),
                                  [&](grpc::ClientContext* context, Call::Reactor* reactor) {
                                    stub->async()->WatchLoad(context, &request, reactor);
                                  });
  }

  std::unique_ptr<rpc::DuplexCall<v1::DecodeRequest>> Decode(
      const std::string& address, const rpc::CallOptions& options,
      rpc::StreamEvents<v1::DecodeResponse> events) override {
    using Call = rpc::BidiStream<v1::DecodeRequest, v1::DecodeResponse>;
    const auto stub = v1::DecodeService::NewStub(channels_.Connect(address));
    return std::make_unique<Call>(loop_, options, std::move(events),
                                  [&](grpc::ClientContext* context, Call::Reactor* reactor) {
                                    stub->async()->Decode(context, reactor);
                                  });
  }

  std::unique_ptr<rpc::ReadableCall> Prefill(
      const std::string& address, const rpc::CallOptions& options,
      const v1::PrefillRequest& request, rpc::StreamEvents<v1::PrefillResponse> events) override {
    using Call = rpc::ReadStream<v1::PrefillResponse>;
    const auto stub = v1::PrefillService::NewStub(channels_.Connect(address));
    // The request is serialized when the call starts, inside the constructor.
    return std::make_unique<Call>(loop_, options, std::move(events),
                                  [&](grpc::ClientContext* context, Call::Reactor* reactor) {
                                    stub->async()->Prefill(context, &request, reactor);
                                  });
  }

 private:
  rpc::EventLoop& loop_;
  rpc::ChannelFactory& channels_;
};

}  // namespace

std::unique_ptr<WorkerCalls> MakeGrpcWorkerCalls(rpc::EventLoop& loop,
                                                 rpc::ChannelFactory& channels) {
  return std::make_unique<GrpcWorkerCalls>(loop, channels);
}

}  // namespace setu::router
