// SPDX-License-Identifier: Apache-2.0
#include "services/router/fair_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace setu::router {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Entries are numbered so that the hundreds name the tenant.
uint32_t TenantOf(uint64_t entry) { return static_cast<uint32_t>(entry / 100); }

class FairLinesTest : public ::testing::Test {
 protected:
  void Add(uint64_t entry, uint32_t weight = 1) {
    lines_.Add({.tenant = TenantOf(entry), .weight = weight}, entry);
  }
  uint64_t TakeFirst(int64_t work) {
    const uint64_t first = lines_.First(1).at(0);
    lines_.Remove(TenantOf(first), first);
    lines_.Charge(TenantOf(first), work);
    return first;
  }

  FairLines lines_;
};

TEST_F(FairLinesTest, TenantsTakeTurnsAndEachServesItsOldest) {
  for (uint64_t entry : {101, 102, 103, 201, 202}) Add(entry);
  for (uint64_t first : {101, 201, 102, 202, 103}) EXPECT_EQ(TakeFirst(10), first);
  EXPECT_THAT(lines_.First(4), IsEmpty());
}

TEST_F(FairLinesTest, WhoHasHadMuchWorkWaitsForTheOthers) {
  for (uint64_t entry : {101, 102, 201, 202, 203, 204}) Add(entry);
  EXPECT_EQ(TakeFirst(30), 101u);
  for (uint64_t first : {201, 202, 203}) EXPECT_EQ(TakeFirst(10), first);
  EXPECT_EQ(TakeFirst(10), 102u);
}

TEST_F(FairLinesTest, TwiceTheWeightIsTwiceTheWork) {
  for (uint64_t i = 0; i < 60; ++i) Add(100 + i, /*weight=*/2), Add(200 + i);
  std::map<uint32_t, int> had;
  for (int i = 0; i < 60; ++i) ++had[TenantOf(TakeFirst(10))];
  EXPECT_EQ(had[1], 40);
  EXPECT_EQ(had[2], 20);
}

TEST_F(FairLinesTest, NobodySavesUpMoreThanABurst) {
  constexpr auto kWork = static_cast<int64_t>(FairLines::kBurst / 2);
  for (uint64_t i = 0; i < 40; ++i) Add(100 + i);
  for (int i = 0; i < 10; ++i) TakeFirst(kWork);
  for (uint64_t i = 0; i < 20; ++i) Add(200 + i);  // it could have had ten before
  for (int i = 0; i < 3; ++i) EXPECT_EQ(TenantOf(TakeFirst(kWork)), 2u) << "a burst";
  std::map<uint32_t, int> had;
  for (int i = 0; i < 20; ++i) ++had[TenantOf(TakeFirst(kWork))];
  EXPECT_EQ(had[1], 10);
  EXPECT_EQ(had[2], 10);
}

TEST_F(FairLinesTest, WhoStillHasABurstKeepsItWhenItsWorkIsSettled) {
  for (uint64_t i = 0; i < 20; ++i) Add(100 + i);
  for (int i = 0; i < 10; ++i) TakeFirst(500);
  for (uint64_t i = 1; i <= 4; ++i) Add(200 + i);
  EXPECT_EQ(TakeFirst(400), 201u);
  lines_.Settle(2, -50);
  for (uint64_t i = 2; i <= 4; ++i) EXPECT_EQ(TakeFirst(400), 200 + i);
}

TEST_F(FairLinesTest, WorkIsSettledWhenItIsKnown) {
  for (uint64_t entry : {101, 102, 103, 201, 202}) Add(entry);
  EXPECT_EQ(TakeFirst(10), 101u);
  lines_.Settle(1, 15);
  EXPECT_EQ(TakeFirst(10), 201u);
  EXPECT_EQ(TakeFirst(10), 202u);
  EXPECT_EQ(TakeFirst(10), 102u);
}

TEST_F(FairLinesTest, AnAccountSettledDownGoesNoFurtherThanTheOthers) {
  for (uint64_t i = 0; i < 4; ++i) Add(100 + i), Add(200 + i);
  for (int i = 0; i < 2; ++i) TakeFirst(10);
  lines_.Settle(1, -1000);
  EXPECT_EQ(TakeFirst(10), 101u);
  EXPECT_EQ(TakeFirst(10), 102u) << "both have had 10";
  EXPECT_EQ(TakeFirst(10), 201u) << "not a hundred turns more";
}

TEST_F(FairLinesTest, TheFirstOfEachLineGoBeforeTheSecond) {
  for (uint64_t entry : {101, 102, 103, 201, 202, 301}) Add(entry);
  EXPECT_THAT(lines_.First(1), ElementsAre(101));
  EXPECT_THAT(lines_.First(4), ElementsAre(101, 201, 301, 102));
  EXPECT_THAT(lines_.First(9), ElementsAre(101, 201, 301, 102, 202, 103));
}

TEST_F(FairLinesTest, AheadOfANewcomerIsItsOwnLineAndTheOthersTurnsMeanwhile) {
  for (uint64_t i = 0; i < 20; ++i) Add(100 + i);
  EXPECT_EQ(lines_.Ahead({.tenant = 1}), 20u);
  EXPECT_EQ(lines_.Ahead({.tenant = 2}), 1u);
  EXPECT_EQ(lines_.Ahead({.tenant = 2, .weight = 4}), 0u);
  Add(201);
  EXPECT_EQ(lines_.Ahead({.tenant = 2}), 3u);
  EXPECT_EQ(lines_.Ahead({.tenant = 3}), 2u);
  EXPECT_EQ(lines_.Ahead({.tenant = 1}), 21u) << "no more than wait";
}

TEST_F(FairLinesTest, KnowsTheNewestOfEach) {
  for (uint64_t entry : {101, 103, 202}) Add(entry);
  EXPECT_EQ(lines_.NewestOf(1), 103u);
  EXPECT_EQ(lines_.NewestOf(2), 202u);
  lines_.Remove(2, 202);
  EXPECT_EQ(lines_.NewestOf(2), std::nullopt);
  EXPECT_EQ(lines_.NewestOf(7), std::nullopt);
}

}  // namespace
}  // namespace setu::router
