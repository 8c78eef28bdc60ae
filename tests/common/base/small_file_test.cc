// SPDX-License-Identifier: Apache-2.0
#include "common/base/small_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace setu {
namespace {

TEST(SmallFile, IsReadWholeUpToItsLimit) {
  test::TempDir dir;
  const std::string path = dir.Write("f", std::string("a\0b\n", 4));
  EXPECT_EQ(*ReadSmallFile("--x file", path, 4), std::string("a\0b\n", 4));
  EXPECT_EQ(ReadSmallFile("--x file", path, 3).status().message(),
            "cannot read --x file " + path + ": it has over 3 bytes, the most allowed");
  EXPECT_EQ(*ReadSmallFile("--x file", dir.Write("empty", ""), 0), "");
}

TEST(SmallFile, IsARegularOneThatIsThere) {
  test::TempDir dir;
  EXPECT_EQ(ReadSmallFile("key", dir.path(), 9).status().message(),
            "cannot read key " + dir.path() + ": it is a directory");
  EXPECT_EQ(ReadSmallFile("key", dir.File("none"), 9).status().message(),
            "cannot read key " + dir.File("none") + ": No such file or directory");
  ASSERT_EQ(mkfifo(dir.File("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadSmallFile("key", dir.File("pipe"), 9).status().message(),
            "cannot read key " + dir.File("pipe") + ": it is no regular file");
}

}  // namespace
}  // namespace setu
