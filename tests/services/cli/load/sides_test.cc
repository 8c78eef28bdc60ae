// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/sides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace setu::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Workload> Load(const std::string& file) {
  WorkloadFlags flags;
  if (file == "missing") return absl::InvalidArgumentError("cannot read missing");
  if (file == "overload") flags.times_capacity = 3;
  return MakeWorkload(file.empty() ? "load" : file, flags);
}

std::vector<std::string> Described(const absl::StatusOr<std::vector<Side>>& sides) {
  std::vector<std::string> out;
  if (!sides.ok()) return {std::string(sides.status().message())};
  for (const Side& side : *sides) {
    out.push_back(absl::StrCat(side.name, " at ", side.address, ":"));
    for (const Workload& workload : side.workloads)
      absl::StrAppend(&out.back(), " ", workload.name);
  }
  return out;
}

SideFlags At(const std::string& address) {
  SideFlags flags;
  flags.address = address;
  return flags;
}

TEST(Sides, OfFlagsAloneAreOne) {
  EXPECT_THAT(Described(MakeSides(At("a:1"), Load)), ElementsAre("load at a:1: load"));
}

TEST(Sides, OfSeveralFilesRunTogether) {
  SideFlags flags = At("a:1");
  flags.files = {"x", "y"};
  EXPECT_THAT(Described(MakeSides(flags, Load)), ElementsAre("x at a:1: x y"));
}

TEST(Sides, BesideIsWithoutThenWith) {
  SideFlags flags = At("a:1");
  flags.files = {"x"};
  flags.beside = {"y", "z"};
  EXPECT_THAT(Described(MakeSides(flags, Load)),
              ElementsAre("alone at a:1: x", "beside at a:1: x y z"));
}

TEST(Sides, VersusIsEachInstead) {
  SideFlags flags = At("a:1");
  flags.files = {"x"};
  flags.versus = {"y", "z"};
  EXPECT_THAT(Described(MakeSides(flags, Load)),
              ElementsAre("x at a:1: x", "y at a:1: y", "z at a:1: z"));
}

TEST(Sides, OfTwoRoutersDoTheSameAtBoth) {
  SideFlags flags = At("a:1");
  flags.address_versus = {"b:1"};
  EXPECT_THAT(Described(MakeSides(flags, Load)),
              ElementsAre("a:1 at a:1: load", "b:1 at b:1: load"));
}

TEST(Sides, OfAMultipleOfTheCapacityBeginWithItsKnee) {
  SideFlags flags = At("a:1");
  flags.files = {"overload"};
  const auto measured = MakeSides(flags, Load);
  EXPECT_THAT(Described(measured), ElementsAre("knee at a:1: overload", "3x at a:1: overload"));
  EXPECT_FALSE(IsOpen((*measured)[0].workloads[0].arrivals));

  flags.capacity = 5;
  const auto given = MakeSides(flags, Load);
  EXPECT_THAT(Described(given), ElementsAre("3x at a:1: overload"));
  EXPECT_EQ(std::get<Poisson>((*given)[0].workloads[0].arrivals).rate, 15);
}

TEST(Sides, RefuseWhatHasNoMeaning) {
  SideFlags flags = At("a:1");
  flags.files = {"x"};
  flags.beside = {"y"};
  flags.versus = {"z"};
  EXPECT_THAT(Described(MakeSides(flags, Load)), ElementsAre(HasSubstr("give one of them")));
  flags.versus = {};
  flags.beside = {"overload"};
  EXPECT_THAT(Described(MakeSides(flags, Load)), ElementsAre(HasSubstr("runs by itself")));
  flags.beside = {"missing"};
  EXPECT_THAT(Described(MakeSides(flags, Load)), ElementsAre("cannot read missing"));
}

}  // namespace
}  // namespace setu::cli
