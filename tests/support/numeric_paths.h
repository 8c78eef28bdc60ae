// SPDX-License-Identifier: Apache-2.0
// Every numeric path, for tests of what holds on each.
//
//   INSTANTIATE_TEST_SUITE_P(Paths, MyTest, testing::ValuesIn(kNumericPaths), NumericPathOf);
#ifndef SETU_TESTS_SUPPORT_NUMERIC_PATHS_H_
#define SETU_TESTS_SUPPORT_NUMERIC_PATHS_H_

#include <gtest/gtest.h>

#include <string>

#include "kernels/ops.h"

namespace setu::test {

constexpr kernels::NumericPath kNumericPaths[] = {
    kernels::NumericPath::kF32, kernels::NumericPath::kInt8G32, kernels::NumericPath::kBf16Tile};

inline std::string NumericPathOf(const testing::TestParamInfo<kernels::NumericPath>& info) {
  switch (info.param) {
    case kernels::NumericPath::kF32:
      return "f32";
    case kernels::NumericPath::kInt8G32:
      return "int8_g32";
    case kernels::NumericPath::kBf16Tile:
      return "bf16_tile";
  }
  return "";
}

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_NUMERIC_PATHS_H_
