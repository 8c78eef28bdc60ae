// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/host_lock.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace setu::roofline {
namespace {

TEST(HostLock, IsHeldByOneAndFreedWithIt) {
  const test::TempDir dir;
  const std::string path = dir.File("lock");
  {
    const HostLock first(path, Duration::zero());
    EXPECT_TRUE(first.held());
    EXPECT_FALSE(HostLock(path, Duration::zero()).held());
  }
  EXPECT_TRUE(HostLock(path, Duration::zero()).held());
}

TEST(HostLock, IsDoneWithoutWhereItsFileCannotBe) {
  const test::TempDir dir;
  EXPECT_FALSE(HostLock(dir.File("no/such/folder"), std::chrono::hours(1)).held());
}

TEST(HostLock, LiesInAFolderThatIsThere) {
  EXPECT_TRUE(HostLock(ProbeLockPath(), std::chrono::seconds(10)).held());
}

}  // namespace
}  // namespace setu::roofline
