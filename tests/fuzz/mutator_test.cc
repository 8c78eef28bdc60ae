// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutator.h"

#include <gtest/gtest.h>

#include <set>

namespace setu::fuzz {
namespace {

TEST(Mutator, OneSeedIsOneSequence) {
  Mutator one(5), same(5), other(6);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const std::string input = one.Mutate("some input", "another");
    EXPECT_EQ(input, same.Mutate("some input", "another"));
    differs = differs || input != other.Mutate("some input", "another");
  }
  EXPECT_TRUE(differs);
}

TEST(Mutator, ReachesLongerShorterAndMixedInputs) {
  Mutator mutator(1);
  bool longer = false, shorter = false, mixed = false;
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string input = mutator.Mutate("aaaaaaaa", "ZZZZZZZZ");
    longer = longer || input.size() > 8;
    shorter = shorter || input.size() < 8;
    mixed = mixed || (input.starts_with("aa") && input.ends_with("ZZ"));
    seen.insert(input);
  }
  EXPECT_TRUE(longer && shorter && mixed);
  EXPECT_GT(seen.size(), 500u);
}

TEST(Mutator, EmptyInputsGrowAndLongOnesStayBounded) {
  Mutator mutator(2);
  size_t longest = 0;
  for (int i = 0; i < 200; ++i) {
    longest = std::max(longest, mutator.Mutate("", "").size());
    const std::string full(kMaxInputBytes, 'x');
    EXPECT_LE(mutator.Mutate(full, full).size(), kMaxInputBytes);
  }
  EXPECT_GT(longest, 0u);
}

}  // namespace
}  // namespace setu::fuzz
