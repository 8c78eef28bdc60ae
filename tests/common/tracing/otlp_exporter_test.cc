// SPDX-License-Identifier: Apache-2.0
// Against a collector of this process: one that takes all, that hangs, that is not there.
#include "common/tracing/otlp_exporter.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"
#include "tests/support/keeping_logger.h"
#include "tests/support/wait_until.h"

namespace setu::tracing {
namespace {

namespace service = opentelemetry::proto::collector::trace::v1;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class LocalCollector final : public service::TraceService::Service {
 public:
  // Port 0: any free one.
  explicit LocalCollector(int port = 0) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~LocalCollector() override { Die(); }

  grpc::Status Export(grpc::ServerContext* context,
                      const service::ExportTraceServiceRequest* request,
                      service::ExportTraceServiceResponse* response) override {
    std::unique_lock lock(mutex_);
    ++calls_;
    changed_.notify_all();
    while (hangs && !context->IsCancelled()) changed_.wait_for(lock, milliseconds(5));
    for (const auto& group : request->resource_spans()) {
      for (const auto& scope : group.scope_spans()) {
        for (const auto& span : scope.spans()) names_.push_back(span.name());
      }
    }
    response->mutable_partial_success()->set_rejected_spans(rejects);
    response->mutable_partial_success()->set_error_message("full");
    return grpc::Status::OK;
  }

  void Die() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_ = nullptr;
  }
  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::vector<std::string> names() {
    const std::lock_guard lock(mutex_);
    return names_;
  }
  bool WaitCalls(int calls) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, seconds(20), [&] { return calls_ >= calls; });
  }

  std::atomic<bool> hangs = false;
  std::atomic<int64_t> rejects = 0;

 private:
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> names_;
  int calls_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

std::vector<Span> Trace(const char* name) {
  return {Span{.context = {.trace_id = {1}, .span_id = {2}, .flags = 1}, .name = name}};
}

constexpr BatchOptions kQuick{.batch_age = milliseconds(1),
                              .tries = 1000,
                              .first_backoff = milliseconds(1),
                              .longest_backoff = milliseconds(20)};

class OtlpExporterTest : public ::testing::Test {
 protected:
  std::unique_ptr<OtlpExporter> ExporterTo(const std::string& address,
                                           const BatchOptions& options = kQuick) {
    return std::make_unique<OtlpExporter>(address, Resource{{"service.name", "test"}}, options,
                                          logger_);
  }
  test::KeepingLogger logger_;
};

TEST_F(OtlpExporterTest, ACollectorGetsEachSpan) {
  LocalCollector collector;
  const auto exporter = ExporterTo(collector.address());
  for (int i = 0; i < 100; ++i) exporter->Add(Trace("queue"));
  exporter->Finish();
  ASSERT_TRUE(exporter->WaitFinished(seconds(20)));
  EXPECT_EQ(collector.names(), std::vector<std::string>(100, "queue"));
  EXPECT_EQ(exporter->figures().exported, 100u);
}

TEST_F(OtlpExporterTest, RejectedSpansAreHeardOf) {
  LocalCollector collector;
  collector.rejects = 1;
  const auto exporter = ExporterTo(collector.address());
  exporter->Add(Trace("queue"));
  exporter->Finish();
  ASSERT_TRUE(exporter->WaitFinished(seconds(20)));
  EXPECT_EQ(exporter->figures().rejected, 1u);
  EXPECT_THAT(logger_.lines("rejected"), ::testing::ElementsAre(HasSubstr("full")));
}

TEST_F(OtlpExporterTest, ACollectorThatDiedAndReturnedGetsWhatWaited) {
  auto collector = std::make_unique<LocalCollector>();
  const int port = collector->port();
  const auto exporter = ExporterTo(collector->address());
  exporter->Add(Trace("before"));
  ASSERT_TRUE(test::WaitUntil(seconds(20), [&] { return exporter->figures().exported == 1; }));
  collector = nullptr;
  exporter->Add(Trace("meanwhile"));
  ASSERT_TRUE(test::WaitUntil(seconds(20), [&] { return !logger_.lines("do not reach").empty(); }));
  collector = std::make_unique<LocalCollector>(port);
  ASSERT_EQ(collector->port(), port);
  ASSERT_TRUE(test::WaitUntil(seconds(20), [&] { return exporter->figures().exported == 2; }));
  EXPECT_EQ(collector->names(), std::vector<std::string>{"meanwhile"});
  EXPECT_TRUE(test::WaitUntil(seconds(20), [&] { return logger_.lines("again").size() == 1; }));
}

TEST_F(OtlpExporterTest, ACollectorThatHangsIsGivenUpByDeadline) {
  LocalCollector collector;
  collector.hangs = true;
  BatchOptions options = kQuick;
  options.call_timeout = milliseconds(20);
  const auto exporter = ExporterTo(collector.address(), options);
  exporter->Add(Trace("queue"));
  ASSERT_TRUE(collector.WaitCalls(2)) << "the first call ended, and was tried again";
  collector.hangs = false;
  EXPECT_TRUE(test::WaitUntil(seconds(20), [&] { return exporter->figures().exported == 1; }));
}

// Nothing that has spans waits for it, not at the end either.
TEST_F(OtlpExporterTest, ItsEndDoesNotWaitForACollectorThatHangs) {
  LocalCollector collector;
  collector.hangs = true;
  BatchOptions options = kQuick;
  options.call_timeout = std::chrono::hours(1);
  auto exporter = ExporterTo(collector.address(), options);
  exporter->Add(Trace("queue"));
  ASSERT_TRUE(collector.WaitCalls(1));
  exporter->Finish();
  EXPECT_FALSE(exporter->WaitFinished(milliseconds(1)));
  exporter = nullptr;  // it would take the hour
}

TEST_F(OtlpExporterTest, WithoutACollectorSpansAreBoundedAndCounted) {
  const std::string address = LocalCollector().address();  // nobody is there any more
  BatchOptions options = kQuick;
  options.max_spans = 10;
  options.tries = 2;
  const auto exporter = ExporterTo(address, options);
  for (int i = 0; i < 50; ++i) exporter->Add(Trace("queue"));
  exporter->Finish();
  ASSERT_TRUE(exporter->WaitFinished(seconds(20)));
  const BatchFigures figures = exporter->figures();
  EXPECT_EQ(figures.exported, 0u);
  EXPECT_EQ(figures.no_room + figures.undelivered, 50u);
  EXPECT_EQ(logger_.lines("do not reach").size(), 1u);
}

}  // namespace
}  // namespace setu::tracing
