// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/task.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace setu::rpc {
namespace {

Task<int> Value(int value) { co_return value; }

TEST(TaskTest, IsLazyAndDestroyedUnstartedWithItsArguments) {
  auto argument = std::make_shared<int>(7);
  bool started = false;
  auto make = [&](std::shared_ptr<int> held) -> Task<int> {
    started = true;
    co_return *held;
  };
  {
    Task<int> task = make(argument);
    EXPECT_EQ(argument.use_count(), 2);
  }
  EXPECT_FALSE(started);
  EXPECT_EQ(argument.use_count(), 1);
}

Task<void> Sum(int rounds, int64_t* sum) {
  for (int i = 0; i < rounds; ++i) {
    int value = co_await Value(i);
    *sum += value;
  }
}

TEST(TaskTest, AwaitingManyReadyTasksKeepsTheStack) {
  int64_t sum = 0;
  Spawn(Sum(200'000, &sum));
  EXPECT_EQ(sum, int64_t{200'000} * 199'999 / 2);
}

Task<std::unique_ptr<std::string>> Named(std::unique_ptr<std::string> name) {
  co_return std::move(name);
}

Task<void> Store(std::unique_ptr<std::string> name, std::string* out, std::shared_ptr<int> held) {
  std::unique_ptr<std::string> same = co_await Named(std::move(name));
  *out = *same + (held ? "!" : "");
}

TEST(TaskTest, MovesValuesThroughAndFreesTheirOwnersOnce) {
  std::string out;
  auto held = std::make_shared<int>(1);
  Spawn(Store(std::make_unique<std::string>(100, 'x'), &out, held));
  EXPECT_EQ(out, std::string(100, 'x') + "!");
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace setu::rpc
