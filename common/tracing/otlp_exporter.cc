// SPDX-License-Identifier: Apache-2.0
#include "common/tracing/otlp_exporter.h"

#include <chrono>
#include <utility>

#include "common/rpc/client_stream.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"

namespace setu::tracing {
namespace {

namespace service = opentelemetry::proto::collector::trace::v1;

// By how much a clock must be moved to count from 1970.
Duration UnixOffset(const Clock& clock) {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()) -
         clock.Now().time_since_epoch();
}

class GrpcCollector final : public Collector {
 public:
  GrpcCollector(rpc::EventLoop& loop, std::shared_ptr<grpc::Channel> channel, Resource resource)
      : loop_(loop), channel_(std::move(channel)), resource_(std::move(resource)) {}

  std::unique_ptr<rpc::OpenCall> Export(std::span<const Span> spans, TimePoint deadline,
                                        Done done) override {
    using Call = rpc::UnaryCall<service::ExportTraceServiceResponse>;
    auto answered = [done =
                         std::move(done)](absl::StatusOr<service::ExportTraceServiceResponse> a) {
      if (!a.ok()) return done(a.status());
      done(Taken{a->partial_success().rejected_spans(), a->partial_success().error_message()});
    };
    const auto stub = service::TraceService::NewStub(channel_);
    const auto request = ToOtlp(spans, resource_, UnixOffset(loop_.clock()));
    // The request is serialized when the call starts, inside the constructor.
    return std::make_unique<Call>(
        loop_, rpc::CallOptions{deadline, {}}, std::move(answered),
        [&](grpc::ClientContext* context, service::ExportTraceServiceResponse* response,
            Call::Reactor* reactor) {
          stub->async()->Export(context, &request, response, reactor);
        });
  }

 private:
  rpc::EventLoop& loop_;
  const std::shared_ptr<grpc::Channel> channel_;
  const Resource resource_;
};

// The sender bounds by itself what it posts.
constexpr size_t kInbox = 16;

}  // namespace

OtlpExporter::OtlpExporter(const std::string& endpoint, Resource resource,
                           const BatchOptions& options, Logger& logger)
    : channels_(rpc::MakeTcpChannelFactory()),
      loop_(clock_, kInbox),
      collector_(std::make_unique<GrpcCollector>(loop_, channels_->Connect(endpoint),
                                                 std::move(resource))),
      sender_(std::make_unique<BatchSender>(loop_, *collector_, options, endpoint, logger)),
      owner_([this] { loop_.Run(); }) {}

OtlpExporter::~OtlpExporter() {
  sender_->Stop();
  loop_.Stop();
  owner_.join();
}

}  // namespace setu::tracing
