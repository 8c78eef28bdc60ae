// SPDX-License-Identifier: Apache-2.0
#include "services/cli/cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/support/temp_dir.h"

namespace setu::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two nodes of two cores with two hyperthreads each, numbered as most systems do: 0 and 4 are one
// core, 0 and 1 two of one node.
std::vector<Cpu> Machine() {
  std::vector<Cpu> cpus;
  for (int id = 0; id < 8; ++id) {
    cpus.push_back({.node = id % 4 / 2, .package = id % 4 / 2, .core = id % 2, .id = id});
  }
  std::ranges::sort(cpus);
  return cpus;
}

TEST(HandOut, GivesEachWorkerWholeCoresOfOneNode) {
  EXPECT_THAT(*HandOut("auto", Machine(), 8, 4, 2),
              ElementsAre(ElementsAre(0, 1, 4, 5), ElementsAre(2, 3, 6, 7)));
  EXPECT_THAT(
      *HandOut("auto", Machine(), 8, 2, 4),
      ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6), ElementsAre(3, 7)));
}

TEST(HandOut, LeavesOutWhatFewerThreadsDoNotNeed) {
  EXPECT_THAT(*HandOut("auto", Machine(), 8, 3, 2),
              ElementsAre(ElementsAre(0, 1, 4), ElementsAre(2, 5, 6)));
}

TEST(HandOut, AutoGivesNoneWhereTheyMustBeShared) {
  EXPECT_THAT(*HandOut("auto", Machine(), 8, 1, 2), IsEmpty()) << "nothing left for its RPCs";
  EXPECT_THAT(*HandOut("auto", Machine(), 8, 4, 3), IsEmpty()) << "twelve threads";
  EXPECT_THAT(*HandOut("auto", Machine(), 6, 3, 2), IsEmpty()) << "a quota of six";
  EXPECT_THAT(*HandOut("off", Machine(), 8, 4, 2), IsEmpty());
}

TEST(HandOut, OnGivesThemOrSaysWhatIsMissing) {
  EXPECT_THAT(*HandOut("on", Machine(), 6, 1, 2), ElementsAre(ElementsAre(0), ElementsAre(4)));
  const absl::Status refused = HandOut("on", Machine(), 8, 4, 3).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(refused.message(), HasSubstr("3 workers with 4 threads each need 12 cores, and "
                                           "there are 8"));
}

TEST(CpusHere, ReadsWhereEachOneIs) {
  test::TempDir dir;
  const auto put = [&](int id, int node, int package, int core) {
    const std::filesystem::path cpu = dir.File(absl::StrCat("sys/devices/system/cpu/cpu", id));
    std::filesystem::create_directories(cpu / "topology");
    std::filesystem::create_directories(cpu / absl::StrCat("node", node));
    std::ofstream(cpu / "topology/physical_package_id") << package << "\n";
    std::ofstream(cpu / "topology/core_id") << core << "\n";
  };
  put(0, 1, 3, 7);
  put(2, 0, 1, 5);
  const int ids[] = {0, 2, 4};
  const std::vector<Cpu> cpus = CpusHere(ids, dir.File(""));
  ASSERT_EQ(cpus.size(), 3u);
  EXPECT_EQ(cpus[0], (Cpu{.id = 4})) << "the system says nothing of it";
  EXPECT_EQ(cpus[1], (Cpu{.node = 0, .package = 1, .core = 5, .id = 2}));
  EXPECT_EQ(cpus[2], (Cpu{.node = 1, .package = 3, .core = 7, .id = 0}));
}

TEST(CpuList, IsAsTheSystemWritesIt) {
  EXPECT_EQ(CpuList(std::vector<int>{0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(CpuList(std::vector<int>{3}), "3");
  EXPECT_EQ(CpuList({}), "");
}

}  // namespace
}  // namespace setu::cli
