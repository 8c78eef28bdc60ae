// SPDX-License-Identifier: Apache-2.0
#include "common/engine/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temp_dir.h"

namespace setu::engine {
namespace {

// A machine of 8 GiB whose proc/ and sys/ stand in a folder of the test's own.
class MemoryLimit : public ::testing::Test {
 protected:
  MemoryLimit() { Write("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:  1024 kB\n"); }

  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_.File(file);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  int64_t Bytes() const { return MemoryLimitBytes(root_.path()); }

  static constexpr int64_t kGiB = int64_t{1} << 30;
  test::TempDir root_;
};

TEST_F(MemoryLimit, IsTheMachinesMemoryWhereNothingLimits) {
  EXPECT_EQ(Bytes(), 8 * kGiB);
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(Bytes(), 8 * kGiB);
}

TEST_F(MemoryLimit, IsTheSmallestOfTheCgroupsAbove) {
  Write("proc/self/cgroup", "0::/pod/worker\n");
  Write("sys/fs/cgroup/pod/memory.max", "2147483648\n");
  Write("sys/fs/cgroup/pod/worker/memory.max", "3221225472\n");
  EXPECT_EQ(Bytes(), 2 * kGiB);
  Write("sys/fs/cgroup/pod/worker/memory.max", "1073741824\n");
  EXPECT_EQ(Bytes(), 1 * kGiB);
}

TEST_F(MemoryLimit, ReadsTheMemoryControllerOfVersion1) {
  Write("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:hugetlb,memory:/job\n0::/\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4294967296\n");
  Write("sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1\n");
  EXPECT_EQ(Bytes(), 4 * kGiB);
}

TEST_F(MemoryLimit, FindsTheLimitAtTheMountWhereThePathIsTheHosts) {
  Write("proc/self/cgroup", "0::/kubepods/pod1/container1\n");
  Write("sys/fs/cgroup/memory.max", "1073741824\n");
  EXPECT_EQ(Bytes(), 1 * kGiB);
  Write("proc/self/cgroup", "0::/../../elsewhere\n");
  EXPECT_EQ(Bytes(), 1 * kGiB);
}

TEST_F(MemoryLimit, NeverExceedsTheMachine) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "99999999999999\n");
  EXPECT_EQ(Bytes(), 8 * kGiB);
}

}  // namespace
}  // namespace setu::engine
