// SPDX-License-Identifier: Apache-2.0
// Sends a process's spans to a collector, by OTLP over gRPC in plain text, on a thread of its own.
//
//   OtlpExporter exporter("127.0.0.1:4317", {{"service.name", "setu-router"}}, {}, logger);
//   exporter.Add(std::move(spans_of_a_trace));     // any thread; waits for nobody
//   ...
//   exporter.Finish();
//   exporter.WaitFinished(std::chrono::seconds(2));
#ifndef SETU_COMMON_TRACING_OTLP_EXPORTER_H_
#define SETU_COMMON_TRACING_OTLP_EXPORTER_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/logging/logger.h"
#include "common/rpc/channel_factory.h"
#include "common/rpc/event_loop.h"
#include "common/tracing/batch_sender.h"
#include "common/tracing/otlp.h"
#include "common/tracing/span.h"

namespace setu::tracing {

class OtlpExporter {
 public:
  // `endpoint`: HOST:PORT, or as gRPC has it. It need not be there, now or ever. The logger must
  // outlive this.
  OtlpExporter(const std::string& endpoint, Resource resource, const BatchOptions& options,
               Logger& logger);
  // What is not delivered is dropped.
  ~OtlpExporter();

  void Add(std::vector<Span> trace) { sender_->Add(std::move(trace)); }
  // No spans come any more: those that wait go at once.
  void Finish() { sender_->Finish(); }
  // False where some are still on their way after `longest`.
  bool WaitFinished(Duration longest) { return sender_->WaitFinished(longest); }
  BatchFigures figures() const { return sender_->figures(); }

 private:
  const SteadyClock clock_;
  const std::unique_ptr<rpc::ChannelFactory> channels_;
  rpc::EventLoop loop_;
  const std::unique_ptr<Collector> collector_;
  std::unique_ptr<BatchSender> sender_;
  std::thread owner_;
};

}  // namespace setu::tracing

#endif  // SETU_COMMON_TRACING_OTLP_EXPORTER_H_
