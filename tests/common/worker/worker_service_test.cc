// SPDX-License-Identifier: Apache-2.0
#include "common/worker/worker_service.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/rpc/server.h"

namespace setu::worker {
namespace {

v1::DescribeResponse Description() {
  v1::DescribeResponse description;
  description.set_role(v1::ROLE_PREFILL);
  description.set_incarnation("f00d");
  return description;
}

v1::WatchLoadResponse Report(uint32_t free) {
  v1::WatchLoadResponse report;
  report.set_blocks_free(free);
  return report;
}

class WorkerServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = rpc::Server::Start({}, {&service_});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::WorkerService::NewStub(server_->InProcessChannel());
  }

  std::atomic<int> drains_ = 0;
  WorkerService service_{Description(), [this] { ++drains_; }};
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
};

TEST_F(WorkerServiceTest, DescribesTheWorker) {
  grpc::ClientContext context;
  v1::DescribeResponse response;
  ASSERT_TRUE(stub_->Describe(&context, {}, &response).ok());
  EXPECT_EQ(response.SerializeAsString(), Description().SerializeAsString());
}

TEST_F(WorkerServiceTest, DrainCallsTheWorkerOnce) {
  grpc::ClientContext context;
  v1::DrainResponse response;
  ASSERT_TRUE(stub_->Drain(&context, {}, &response).ok());
  EXPECT_EQ(drains_, 1);
}

TEST_F(WorkerServiceTest, AWatchStartsWithTheNewestReport) {
  service_.Publish(Report(1));
  service_.Publish(Report(2));
  grpc::ClientContext context;
  auto watch = stub_->WatchLoad(&context, {});
  v1::WatchLoadResponse report;
  ASSERT_TRUE(watch->Read(&report));
  EXPECT_EQ(report.blocks_free(), 2u);
  EXPECT_EQ(report.sequence(), 2u);
  EXPECT_EQ(report.incarnation(), "f00d");
}

TEST_F(WorkerServiceTest, AWatchBeforeTheFirstReportWaitsForIt) {
  grpc::ClientContext context;
  auto watch = stub_->WatchLoad(&context, {});
  service_.Publish(Report(5));
  v1::WatchLoadResponse report;
  ASSERT_TRUE(watch->Read(&report));
  EXPECT_EQ(report.blocks_free(), 5u);
}

// Thousands of reports within moments: few are sent, sequences ascend, the newest one arrives.
TEST_F(WorkerServiceTest, ReportsAreCoalescedAndTheNewestArrives) {
  service_.Publish(Report(0));
  grpc::ClientContext context;
  auto watch = stub_->WatchLoad(&context, {});
  v1::WatchLoadResponse report;
  ASSERT_TRUE(watch->Read(&report));
  const auto start = std::chrono::steady_clock::now();
  for (uint32_t i = 1; i <= 5000; ++i) service_.Publish(Report(i));
  uint64_t last = report.sequence();
  int reports = 0;
  while (report.blocks_free() != 5000) {
    ASSERT_TRUE(watch->Read(&report));
    EXPECT_GT(report.sequence(), last);
    last = report.sequence();
    ++reports;
  }
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_LE(reports, 2 + took / std::chrono::milliseconds(20));
}

TEST_F(WorkerServiceTest, WithoutChangesAReportStillComes) {
  service_.Publish(Report(9));
  grpc::ClientContext context;
  auto watch = stub_->WatchLoad(&context, {});
  v1::WatchLoadResponse first, second;
  ASSERT_TRUE(watch->Read(&first));
  ASSERT_TRUE(watch->Read(&second));
  EXPECT_EQ(second.sequence(), first.sequence());
}

TEST_F(WorkerServiceTest, EndWatchesEndsRunningAndLaterOnes) {
  service_.Publish(Report(1));
  grpc::ClientContext context;
  auto watch = stub_->WatchLoad(&context, {});
  v1::WatchLoadResponse report;
  ASSERT_TRUE(watch->Read(&report));
  service_.EndWatches();
  while (watch->Read(&report)) {
  }
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);

  grpc::ClientContext late_context;
  auto late = stub_->WatchLoad(&late_context, {});
  EXPECT_FALSE(late->Read(&report));
  EXPECT_EQ(late->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(WorkerServiceTest, WatchersComeAndGoWhileReportsArePublished) {
  std::atomic<bool> stop = false;
  std::thread publisher([&] {
    for (uint32_t i = 0; !stop; ++i) service_.Publish(Report(i));
  });
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    auto watch = stub_->WatchLoad(&context, {});
    v1::WatchLoadResponse report;
    EXPECT_TRUE(watch->Read(&report));
    context.TryCancel();
    EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  stop = true;
  publisher.join();
}

}  // namespace
}  // namespace setu::worker
