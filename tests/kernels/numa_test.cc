// SPDX-License-Identifier: Apache-2.0
#include "kernels/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>

#include "kernels/device.h"

namespace setu::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NumaTest, NodesAreThoseOfTheCpusEachOnce) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / "numa_nodes";
  std::filesystem::remove_all(root);
  const auto put = [&](int cpu, int node) {
    const std::filesystem::path folder =
        root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu));
    std::filesystem::create_directories(folder / ("node" + std::to_string(node)));
    std::filesystem::create_directories(folder / "nodes_of_nothing");
  };
  put(0, 2);
  put(1, 0);
  put(2, 2);
  const int all[] = {0, 1, 2}, some[] = {0, 2}, unknown[] = {9};
  EXPECT_THAT(NodesOf(all, root), ElementsAre(0, 2));
  EXPECT_THAT(NodesOf(some, root), ElementsAre(2));
  EXPECT_THAT(NodesOf(unknown, root), ElementsAre(0)) << "a system without nodes";
  std::filesystem::remove_all(root);
}

TEST(NumaTest, MaskHasABitForEachNode) {
  EXPECT_THAT(NodeMask(std::vector<int>{0, 2}), ElementsAre(0b101ul));
  EXPECT_THAT(NodeMask(std::vector<int>{1, 64, 65}), ElementsAre(0b10ul, 0b11ul));
}

TEST(NumaTest, OneNodeIsNothingToSpreadOver) {
  EXPECT_THAT(NodeMask(std::vector<int>{3}), IsEmpty());
  EXPECT_THAT(NodeMask({}), IsEmpty());
}

// Of the page at `address`; -1 where the system tells none.
int PolicyAt(const std::byte* address) {
  int policy = -1;
  const long told = syscall(SYS_get_mempolicy, &policy, nullptr, 0, address, MPOL_F_ADDR);
  return told == 0 ? policy : -1;
}

// Nodes that are not here are left out by the system, so one node is enough to see the policy.
TEST(NumaTest, SpreadsWholePagesAndNothingBeside) {
  const size_t page = sysconf(_SC_PAGESIZE);
  void* data = mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  auto* bytes = static_cast<std::byte*>(data);
  if (PolicyAt(bytes) != MPOL_DEFAULT) GTEST_SKIP() << "this system tells no policy";
  const int node = NodesOf(AvailableCpus()).front();
  Spread({bytes, 4 * page}, std::vector<int>{node});
  EXPECT_EQ(PolicyAt(bytes), MPOL_DEFAULT);
  Spread({bytes + 1, 3 * page}, std::vector<int>{node, node + 1});
  EXPECT_EQ(PolicyAt(bytes), MPOL_DEFAULT);
  EXPECT_EQ(PolicyAt(bytes + page), MPOL_INTERLEAVE);
  EXPECT_EQ(PolicyAt(bytes + 2 * page), MPOL_INTERLEAVE);
  EXPECT_EQ(PolicyAt(bytes + 3 * page), MPOL_DEFAULT);
  munmap(data, 4 * page);
}

}  // namespace
}  // namespace setu::kernels
