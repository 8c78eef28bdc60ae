// SPDX-License-Identifier: Apache-2.0
// Every numeric path, for tests of what holds on each.
//
//   INSTANTIATE_TEST_SUITE_P(Paths, MyTest, testing::ValuesIn(kNumericPaths), NumericPathOf);
#ifndef SETU_TESTS_SUPPORT_NUMERIC_PATHS_H_
#define SETU_TESTS_SUPPORT_NUMERIC_PATHS_H_

#include <gtest/gtest.h>

#include <string>

#include "kernels/device.h"

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

// A path with a type of KV. Int8 comes with every test of whole paths: its blocks have scales too.
struct PathAndKv {
  kernels::NumericPath path;
  kernels::KvType kv_type;

  // The path's part of `options`.
  kernels::CpuOptions On(kernels::CpuOptions options) const {
    options.path = path;
    options.kv_type = kv_type;
    return options;
  }
};

constexpr PathAndKv kPathsAndKv[] = {{kernels::NumericPath::kF32, kernels::KvType::kF32},
                                     {kernels::NumericPath::kInt8G32, kernels::KvType::kF16},
                                     {kernels::NumericPath::kInt8G32, kernels::KvType::kInt8},
                                     {kernels::NumericPath::kBf16Tile, kernels::KvType::kBF16}};

inline std::string PathAndKvOf(const testing::TestParamInfo<PathAndKv>& info) {
  return NumericPathOf({info.param.path, 0}) + "_kv_" + kernels::KvTypeName(info.param.kv_type);
}

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_NUMERIC_PATHS_H_
