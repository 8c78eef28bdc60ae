// SPDX-License-Identifier: Apache-2.0
#include "services/router/tokenising_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

namespace setu::router {
namespace {

using ::testing::ElementsAre;

// One thread that is held up until the test lets it go.
class TokenisingPoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(pool_->Run(0, [this] {
      began_.set_value();
      go_on_.get_future().wait();
    }));
    began_.get_future().wait();
  }
  bool Run(uint32_t tenant, int number) {
    return pool_->Run(tenant, [this, number] { ran_.push_back(number); });
  }
  std::vector<int> RunAll() {
    go_on_.set_value();
    pool_.reset();
    return ran_;
  }

  std::promise<void> began_, go_on_;
  std::vector<int> ran_;
  std::unique_ptr<TokenisingPool> pool_ = std::make_unique<TokenisingPool>(1, 8);
};

TEST_F(TokenisingPoolTest, TenantsTakeTurns) {
  for (int number : {11, 12, 13}) EXPECT_TRUE(Run(1, number));
  for (int number : {21, 22}) EXPECT_TRUE(Run(2, number));
  EXPECT_THAT(RunAll(), ElementsAre(11, 21, 12, 22, 13));
}

TEST_F(TokenisingPoolTest, ATenantHasNoMoreThanIsLeftForTheOthers) {
  int of_one = 0;
  while (Run(1, 0)) ++of_one;
  EXPECT_EQ(of_one, 4);
  EXPECT_TRUE(Run(2, 0));
  EXPECT_TRUE(Run(3, 0));
  EXPECT_FALSE(Run(1, 0));
  EXPECT_TRUE(Run(2, 0)) << "two lines of two, and six waiting";
  EXPECT_EQ(RunAll().size(), 7u);
}

}  // namespace
}  // namespace setu::router
