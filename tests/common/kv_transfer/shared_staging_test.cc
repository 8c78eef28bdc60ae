// SPDX-License-Identifier: Apache-2.0
#include "common/kv_transfer/shared_staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tests/support/held_memory.h"

namespace setu::kv_transfer {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr size_t kSlot = 8192;

TEST(SharedStaging, GivesEachSlotOnceUntilItComesBack) {
  auto staging = *SharedStaging::Create(3 * kSlot + 1, kSlot);
  std::vector<SharedStaging::Slot> slots;
  for (int i = 0; i < 3; ++i) slots.push_back(*staging->Take());
  EXPECT_FALSE(staging->Take().has_value());
  for (size_t i = 0; i < 3; ++i) std::ranges::fill(slots[i].bytes(), std::byte(i + 1));
  for (size_t i = 0; i < 3; ++i) EXPECT_THAT(slots[i].bytes(), Each(std::byte(i + 1)));
  const uint64_t last = slots.back().offset();
  slots.pop_back();
  EXPECT_EQ(staging->Take()->offset(), last);
  EXPECT_EQ(staging->free(), 1u);
  slots.clear();
  EXPECT_EQ(staging->free(), 3u);
}

TEST(SharedStaging, ASlotThatWasMovedComesBackOnce) {
  auto staging = *SharedStaging::Create(2 * kSlot, kSlot);
  std::optional<SharedStaging::Slot> slot = staging->Take();
  {
    const SharedStaging::Slot moved = *std::move(slot);
    slot.reset();
    EXPECT_EQ(staging->free(), 1u);
  }
  EXPECT_EQ(staging->free(), 2u);
}

TEST(SharedStaging, MustHoldAFrame) {
  const auto small = SharedStaging::Create(kSlot - 1, kSlot);
  EXPECT_TRUE(absl::IsInvalidArgument(small.status()));
  EXPECT_THAT(small.status().message(), HasSubstr("--kv-shm"));
  EXPECT_EQ(*SharedStaging::Create(0, kSlot), nullptr);
}

TEST(SharedStaging, MemoryThatIsNotThereIsAnErrorThatNamesTheFlag) {
  const auto huge = SharedStaging::Create(size_t{1} << 62, kSlot);
  EXPECT_TRUE(absl::IsResourceExhausted(huge.status())) << huge.status();
  EXPECT_THAT(huge.status().message(), HasSubstr("--kv-shm"));
}

TEST(SharedStaging, LeavesNothingBehind) {
  auto staging = *SharedStaging::Create(kSlot, kSlot);
  EXPECT_EQ(test::HeldMemories(), 2u) << "its descriptor and its mapping";
  staging.reset();
  EXPECT_EQ(test::HeldMemories(), 0u);
}

}  // namespace
}  // namespace setu::kv_transfer
