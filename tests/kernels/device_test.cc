// SPDX-License-Identifier: Apache-2.0
#include "kernels/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>

#include "kernels/cpu/cpu_quota.h"

namespace setu::kernels {
namespace {

using testing::HasSubstr;

TEST(DeviceTest, NamesPathsIsasAndThreads) {
  for (const std::string& isa : AvailableIsas()) {
    auto f32 = MakeCpuOps({.path = NumericPath::kF32, .isa = isa, .threads = 3});
    ASSERT_TRUE(f32.ok()) << f32.status();
    EXPECT_EQ((*f32)->path_name(), "f32/kv-f32/r1");
    EXPECT_EQ((*f32)->kv_type(), KvType::kF32);
    EXPECT_EQ((*f32)->isa_name(), isa);
    EXPECT_EQ((*f32)->threads(), 3);
    auto int8 = MakeCpuOps({.path = NumericPath::kInt8G32, .isa = isa, .threads = 1});
    ASSERT_TRUE(int8.ok()) << int8.status();
    EXPECT_EQ((*int8)->path_name(), "int8-g32/kv-f16/r1");
    EXPECT_EQ((*int8)->kv_type(), KvType::kF16);
    auto bf16 = MakeCpuOps({.path = NumericPath::kBf16Tile, .isa = isa, .threads = 1});
    ASSERT_TRUE(bf16.ok()) << bf16.status();
    EXPECT_EQ((*bf16)->path_name(), "bf16-tile/kv-bf16/r1");
    EXPECT_EQ((*bf16)->kv_type(), KvType::kBF16);
    auto kv = MakeCpuOps({.path = NumericPath::kInt8G32, .kv_type = KvType::kInt8, .isa = isa});
    ASSERT_TRUE(kv.ok()) << kv.status();
    EXPECT_EQ((*kv)->path_name(), "int8-g32/kv-int8/r1");
    EXPECT_EQ((*kv)->kv_type(), KvType::kInt8);
  }
  EXPECT_EQ(AvailableIsas().back(), "portable");
  EXPECT_EQ((*MakeCpuOps({}))->isa_name(), AvailableIsas().front());
}

TEST(DeviceTest, RefusesWhatItDoesNotKnow) {
  const absl::Status isa = MakeCpuOps({.isa = "sse9"}).status();
  EXPECT_EQ(isa.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(isa.message()), HasSubstr("--isa=sse9"));
  EXPECT_THAT(std::string(isa.message()), HasSubstr("portable"));
  const absl::Status threads = MakeCpuOps({.threads = -1}).status();
  EXPECT_EQ(threads.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(threads.message()), HasSubstr("--threads=-1"));
  const bool amx = AvailableIsas().front() == "amx";
  EXPECT_EQ(*ParseNumericPath("auto"), amx ? NumericPath::kBf16Tile : NumericPath::kInt8G32);
  EXPECT_EQ(*ParseNumericPath("int8-g32"), NumericPath::kInt8G32);
  EXPECT_EQ(*ParseNumericPath("bf16-tile"), NumericPath::kBf16Tile);
  EXPECT_EQ(*ParseNumericPath("f32"), NumericPath::kF32);
  EXPECT_THAT(std::string(ParseNumericPath("fp4").status().message()), HasSubstr("--numerics=fp4"));
  EXPECT_EQ(*ParseKvType("auto"), std::nullopt);
  EXPECT_EQ(*ParseKvType("f32"), KvType::kF32);
  EXPECT_EQ(*ParseKvType("f16"), KvType::kF16);
  EXPECT_EQ(*ParseKvType("bf16"), KvType::kBF16);
  EXPECT_EQ(*ParseKvType("int8"), KvType::kInt8);
  EXPECT_THAT(std::string(ParseKvType("fp8").status().message()), HasSubstr("--kv-dtype=fp8"));
}

TEST(DeviceTest, ThreadsAreWithinTheAffinity) {
  EXPECT_LE(AvailableThreads(), std::ssize(AvailableCpus()));
  int threads = 0;
  std::thread([&threads] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(AvailableCpus().back(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    threads = (*MakeCpuOps({}))->threads();
  }).join();
  EXPECT_EQ(threads, 1);
}

TEST(DeviceTest, APinnedThreadNeedsACoreForItself) {
  const int cores = static_cast<int>(AvailableCpus().size());
  ASSERT_GE(cores, 1);
  EXPECT_EQ((*MakeCpuOps({.threads = cores, .pin_threads = true}))->threads(), cores);
  const absl::Status status = MakeCpuOps({.threads = cores + 1, .pin_threads = true}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--pin-threads"));
}

// A made-up file system below a folder of its own.
class QuotaTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) / (std::string("quota_") + test->name());
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  double Quota() const { return CgroupCpuQuota(root_.string()); }

 private:
  std::filesystem::path root_;
};

TEST_F(QuotaTest, NothingThereIsNoLimit) { EXPECT_TRUE(std::isinf(Quota())); }

TEST_F(QuotaTest, Version2TakesTheLeastOfAllParents) {
  Write("proc/self/cgroup", "0::/a/b\n");
  Write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_TRUE(std::isinf(Quota()));
  Write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(Quota(), 1.5);
  Write("sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(Quota(), 1.5);
  Write("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(Quota(), 0.5);
}

TEST_F(QuotaTest, Version2SeenFromInsideAContainer) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_DOUBLE_EQ(Quota(), 2.0);
}

TEST_F(QuotaTest, Version1) {
  Write("proc/self/cgroup", "5:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  EXPECT_TRUE(std::isinf(Quota()));
  Write("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "250000\n");
  EXPECT_DOUBLE_EQ(Quota(), 2.5);
}

TEST(ThreadsWithin, AreWholeCpus) {
  EXPECT_EQ(ThreadsWithin(8, std::numeric_limits<double>::infinity()), 8);
  EXPECT_EQ(ThreadsWithin(2, 1.0), 1);
  EXPECT_EQ(ThreadsWithin(2, 1.9), 1);
  EXPECT_EQ(ThreadsWithin(2, 4.0), 2);
  EXPECT_EQ(ThreadsWithin(4, 2.5), 2);
  EXPECT_EQ(ThreadsWithin(4, 0.1), 1);
}

TEST_F(QuotaTest, NonsenseLimitsNothing) {
  Write("proc/self/cgroup", "nonsense\n:\n0::relative\n1:cpuset:/\n0::/\n");
  Write("sys/fs/cgroup/cpu.max", "zero 0\n");
  EXPECT_TRUE(std::isinf(Quota()));
  Write("sys/fs/cgroup/cpu.max", "100000 0\n");
  EXPECT_TRUE(std::isinf(Quota()));
}

}  // namespace
}  // namespace setu::kernels
