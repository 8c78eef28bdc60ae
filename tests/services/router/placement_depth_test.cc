// SPDX-License-Identifier: Apache-2.0
// How many prompts a prefill worker is given beyond the one that it computes.
#include <gtest/gtest.h>

#include <vector>

#include "services/router/placement.h"

namespace setu::router {
namespace {

using Kind = Placement::Kind;

class PlacementDepthTest : public ::testing::Test {
 protected:
  // Of a thousand tokens a second; whether this router gave them or the worker reports them.
  Kind With(int32_t prompts, int64_t tokens) const {
    WorkerView claimed{.blocks_total = 100, .tokens_per_second = 1000};
    claimed.claimed = {.tokens = tokens, .prompts = prompts};
    const WorkerView reported{
        .blocks_total = 100, .queued = prompts, .queued_tokens = tokens, .tokens_per_second = 1000};
    EXPECT_EQ(WithPrefill(claimed), WithPrefill(reported));
    return WithPrefill(claimed);
  }
  Kind WithPrefill(const WorkerView& prefill) const {
    const WorkerView decode{.blocks_total = 100, .blocks_free = 100, .running_max = 16};
    return Place(request_, std::vector{prefill}, std::vector{decode}).kind;
  }
  PlacementRequest request_{.prompt_tokens = 64, .tokens_to_come = 64};
};

TEST_F(PlacementDepthTest, OneTenantHasTheNextPromptThereAndAQuarterOfASecondOfShortOnes) {
  EXPECT_EQ(With(1, 100'000), Kind::kPair);
  EXPECT_EQ(With(2, 100'000), Kind::kWait);
  EXPECT_EQ(With(2, 251), Kind::kWait);
  EXPECT_EQ(With(4, 249), Kind::kPair);
}

TEST_F(PlacementDepthTest, WhereTenantsShareItAPromptIsThereAloneUnlessItIsShort) {
  request_.shared = true;
  EXPECT_EQ(With(0, 0), Kind::kPair);
  EXPECT_EQ(With(1, 31), Kind::kWait);
  EXPECT_EQ(With(2, 29), Kind::kPair);
}

}  // namespace
}  // namespace setu::router
