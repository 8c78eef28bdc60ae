// SPDX-License-Identifier: Apache-2.0
#include "services/router/worker_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "tests/support/fake_clock.h"
#include "tests/support/fake_workers.h"
#include "tests/support/loop_thread.h"
#include "tests/support/wait_until.h"

namespace setu::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kTimeout(5);

class WorkerClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    decode_ = &workers_.AddDecode("decode-0");
    owner_.Do([this] {
      client_ =
          std::make_unique<WorkerClient>(owner_.loop, *calls_, decode_->address(), kTimeout,
                                         WorkerSight{.seen =
                                                         [this](const auto&, const auto& load) {
                                                           free_ = load.blocks_free();
                                                           return true;
                                                         },
                                                     .lost =
                                                         [this](const absl::Status& why) {
                                                           if (lost_++ == 0) why_.set_value(why);
                                                         }});
    });
  }
  void TearDown() override {
    owner_.Do([this] { client_ = nullptr; });
    owner_.Stop();
  }
  // What is due by then has happened.
  void Pass(Duration time) {
    clock_.Advance(time);
    owner_.Do([] {});
  }
  // Reports that many free blocks, and waits until that is seen.
  bool IsSeen(uint32_t free) {
    worker::v1::WatchLoadResponse load = decode_->load();
    load.set_blocks_free(free);
    decode_->Report(load);
    return test::WaitUntil(seconds(20), [&] { return free_ == free; });
  }

  test::FakeWorkers workers_;
  test::FakeDecode* decode_ = nullptr;
  testing::FakeClock clock_;
  std::atomic<uint32_t> free_ = 0;
  std::atomic<int> lost_ = 0;
  std::promise<absl::Status> why_;
  const std::unique_ptr<WorkerCalls> calls_ = MakeGrpcWorkerCalls(owner_.loop, workers_.network());
  std::unique_ptr<WorkerClient> client_;
  testing::LoopThread owner_{clock_};
};

TEST_F(WorkerClientTest, LosesAWorkerThatDoesNotReportForTheTimeGiven) {
  ASSERT_TRUE(IsSeen(7));
  clock_.Advance(kTimeout - milliseconds(1));
  ASSERT_TRUE(IsSeen(8));
  clock_.Advance(kTimeout - milliseconds(1));
  ASSERT_TRUE(IsSeen(9));
  EXPECT_EQ(lost_, 0) << "each report came in time";
  EXPECT_TRUE(test::WaitUntil(seconds(20), [&] { return Pass(kTimeout), lost_ > 0; }));
  const absl::Status why = why_.get_future().get();
  EXPECT_EQ(why.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(why.message(), "no load report for 5 s");
}

TEST_F(WorkerClientTest, SeesAWorkerThatWasLostAgain) {
  ASSERT_TRUE(IsSeen(7));
  decode_->Kill();
  EXPECT_TRUE(test::WaitUntil(seconds(20), [&] { return lost_ > 0; }));
  free_ = 0;
  decode_->Restart();
  EXPECT_TRUE(test::WaitUntil(seconds(20), [&] {
    Pass(seconds(1));  // for its back-off
    return free_ > 0;
  }));
  EXPECT_TRUE(IsSeen(8));
}

}  // namespace
}  // namespace setu::router
