// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/idle_probe.h"

#include <gtest/gtest.h>

#include "common/engine/model_runner.h"
#include "tests/support/tiny_model.h"

namespace setu::roofline {
namespace {

class IdleProbeTest : public ::testing::Test {
 protected:
  static std::unique_ptr<engine::ModelRunner> Load(const test::TempDir& dir) {
    auto runner = engine::ModelRunner::Load(
        {.model_path = test::WriteTinyModel(dir, {.weights = kernels::WeightType::kQ8_0}),
         .cpu = {.threads = 1},
         .kv_memory_bytes = 1 << 20},
        nullptr);
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }
  // Idle and looked at whenever it wants, until a probe is whole or `limit` has come.
  std::optional<Peaks> RunUntil(TimePoint limit) {
    while (true) {
      if (const auto peaks = probe_.Turn(now_, true)) return peaks;
      if (*probe_.next() > limit) return std::nullopt;
      now_ = std::max(now_, *probe_.next());
    }
  }

  const test::TempDir dir_;
  const std::string lock_ = dir_.File("lock");
  const std::unique_ptr<engine::ModelRunner> runner_ = Load(dir_);
  const TimePoint start_{std::chrono::hours(100)};
  TimePoint now_ = start_;
  IdleProbe probe_{runner_->ops(), runner_->weights(), lock_, start_};
};

TEST_F(IdleProbeTest, ProbesAgainAfterAWhileAndThenRarely) {
  EXPECT_EQ(RunUntil(start_ + IdleProbe::kEvery - Duration(1)), std::nullopt);
  const auto peaks = RunUntil(start_ + IdleProbe::kEvery);
  ASSERT_TRUE(peaks.has_value());
  EXPECT_GT(peaks->bytes_per_second, 0);
  EXPECT_GT(peaks->operations_per_second, 0);
  EXPECT_EQ(RunUntil(now_ + IdleProbe::kEvery - Duration(1)), std::nullopt);
  EXPECT_TRUE(RunUntil(now_ + IdleProbe::kEvery).has_value());
}

TEST_F(IdleProbeTest, WaitsUntilItsOwnerIsIdleForAWhile) {
  now_ += 2 * IdleProbe::kEvery;
  EXPECT_EQ(probe_.Turn(now_, false), std::nullopt);
  EXPECT_EQ(probe_.next(), std::nullopt) << "only an event changes that";
  EXPECT_EQ(probe_.Turn(now_, true), std::nullopt);
  EXPECT_EQ(probe_.next(), now_ + IdleProbe::kIdle);
}

// What comes in the middle waits for one slice, and the next probe for an idle while.
TEST_F(IdleProbeTest, GivesWayToWork) {
  now_ += IdleProbe::kEvery;
  EXPECT_EQ(probe_.Turn(now_, true), std::nullopt);
  now_ += IdleProbe::kIdle;
  EXPECT_EQ(probe_.Turn(now_, true), std::nullopt);
  EXPECT_FALSE(HostLock(lock_, Duration::zero()).held()) << "it probes";
  EXPECT_EQ(probe_.Turn(now_, false), std::nullopt);
  EXPECT_TRUE(HostLock(lock_, Duration::zero()).held());
  EXPECT_EQ(probe_.Turn(now_, true), std::nullopt);
  EXPECT_EQ(probe_.next(), now_ + IdleProbe::kIdle);
}

// Two at once would each see half of the machine.
TEST_F(IdleProbeTest, LetsAnotherProcessFinishFirst) {
  {
    const HostLock other(lock_, Duration::zero());
    EXPECT_EQ(RunUntil(start_ + IdleProbe::kEvery), std::nullopt);
    EXPECT_GT(*probe_.next(), now_);
  }
  EXPECT_TRUE(RunUntil(start_ + 2 * IdleProbe::kEvery).has_value());
  EXPECT_TRUE(HostLock(lock_, Duration::zero()).held());
}

}  // namespace
}  // namespace setu::roofline
