// SPDX-License-Identifier: Apache-2.0
#include "kernels/line_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace setu::kernels {
namespace {

template <class T>
uintptr_t Start(const LineBuffer<T>& buffer) {
  return reinterpret_cast<uintptr_t>(buffer.data());
}

TEST(LineBuffer, StartsOnALineAndALargeOneOnAHugePage) {
  for (const size_t bytes : {size_t{1}, size_t{100}, kHugePage - 1}) {
    EXPECT_EQ(Start(LineBuffer<uint8_t>(bytes)) % 64, 0u) << bytes;
  }
  for (const size_t bytes : {kHugePage, kHugePage + 1, 3 * kHugePage - 1}) {
    EXPECT_EQ(Start(LineBuffer<uint8_t>(bytes)) % kHugePage, 0u) << bytes;
  }
  EXPECT_EQ(Start(LineBuffer<float>(kHugePage / sizeof(float))) % kHugePage, 0u);
}

TEST(LineBuffer, GrowsFromSmallToLargeAndKeepsWhatItHolds) {
  LineBuffer<int32_t> buffer;
  for (int32_t i = 0; i < 1'000'000; ++i) buffer.push_back(i);
  for (int32_t i = 0; i < 1'000'000; ++i) ASSERT_EQ(buffer[i], i);
}

}  // namespace
}  // namespace setu::kernels
