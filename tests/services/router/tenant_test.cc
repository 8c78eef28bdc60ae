// SPDX-License-Identifier: Apache-2.0
#include "services/router/tenant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace setu::router {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::HasSubstr;

const TimePoint kStart{hours(1)};

class TenantTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::shared_ptr<Visit>> Enter(TimePoint now = kStart) {
    return Visit::Enter({tenant_, Priority::kHigh}, now);
  }
  double SecondsToWait(TimePoint now = kStart) {
    return std::chrono::duration<double>(tenant_->RetryAfter(now)).count();
  }
  std::shared_ptr<Tenant> tenant_ =
      std::make_shared<Tenant>(7, 99, Tenant::Limits{.weight = 3, .requests = 2});
};

TEST_F(TenantTest, AVisitSaysWhoseShareItIs) {
  const auto visit = *Enter();
  EXPECT_EQ(visit->share().tenant, 7u);
  EXPECT_EQ(visit->share().weight, 3u);
  EXPECT_EQ(visit->share().priority, Priority::kHigh);
  EXPECT_EQ(visit->tenant().cache_salt(), 99u);
}

TEST_F(TenantTest, RequestsAtOnceAreBoundedUntilOneEnds) {
  std::vector<std::shared_ptr<Visit>> visits = {*Enter(), *Enter()};
  const auto third = Enter();
  EXPECT_EQ(third.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(third.status().message(), HasSubstr("quota: 2 requests"));
  visits.pop_back();
  EXPECT_TRUE(Enter().ok());
}

TEST_F(TenantTest, WithoutLimitsThereIsNoBound) {
  tenant_->SetLimits({});
  std::vector<std::shared_ptr<Visit>> visits;
  for (int i = 0; i < 1000; ++i) {
    visits.push_back(*Enter());
    EXPECT_TRUE(visits.back()->Begin(1'000'000'000, kStart).ok());
  }
  EXPECT_EQ(SecondsToWait(), 0);
}

TEST_F(TenantTest, AMinutesTokensMayComeAtOnceAndComeBackEvenly) {
  tenant_->SetLimits({.tokens_per_minute = 600});
  const auto visit = *Enter();
  EXPECT_TRUE(visit->Begin(599, kStart).ok());
  EXPECT_TRUE(Enter().ok());
  EXPECT_TRUE(visit->Begin(101, kStart).ok());
  const auto refused = Enter();
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), HasSubstr("600 tokens a minute"));
  EXPECT_NEAR(SecondsToWait(), 10.1, 0.001) << "100 tokens behind, and one to spend";
  EXPECT_FALSE(Enter(kStart + seconds(10)).ok());
  EXPECT_TRUE(Enter(kStart + seconds(11)).ok());
  EXPECT_EQ(SecondsToWait(kStart + seconds(11)), 0);
}

// However many are let in before the first of them is known to cost anything.
TEST_F(TenantTest, OfThoseThatComeTogetherNoneBeginsWithoutTokens) {
  tenant_->SetLimits({.tokens_per_minute = 600});
  std::vector<std::shared_ptr<Visit>> visits;
  for (int i = 0; i < 5; ++i) visits.push_back(*Enter());
  int begun = 0;
  for (const auto& visit : visits) begun += visit->Begin(400, kStart).ok() ? 1 : 0;
  EXPECT_EQ(begun, 2) << "one more than fits at most";
  EXPECT_NEAR(SecondsToWait(), 20.1, 0.001) << "those that did not begin cost nothing";
}

TEST_F(TenantTest, NoMoreThanAMinuteIsSavedUp) {
  tenant_->SetLimits({.tokens_per_minute = 600});
  const auto visit = *Enter();
  const TimePoint later = kStart + hours(5);
  EXPECT_TRUE(visit->Begin(600, later).ok());
  EXPECT_FALSE(Enter(later).ok());
}

TEST_F(TenantTest, WhatWasNotNeededIsGivenBack) {
  tenant_->SetLimits({.tokens_per_minute = 600});
  const auto visit = *Enter();
  EXPECT_TRUE(visit->Begin(700, kStart).ok());
  EXPECT_FALSE(Enter().ok());
  visit->Settle(-690, kStart);
  EXPECT_TRUE(Enter().ok());
}

TEST_F(TenantTest, NewLimitsCountAtOnceForWhatIsUnderWayToo) {
  const auto visit = *Enter();
  tenant_->SetLimits({.requests = 1});
  EXPECT_FALSE(Enter().ok());
  tenant_->SetLimits({.requests = 2});
  EXPECT_TRUE(Enter().ok());
}

}  // namespace
}  // namespace setu::router
