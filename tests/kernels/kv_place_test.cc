// SPDX-License-Identifier: Apache-2.0
#include "kernels/kv_place.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/tensor.h"

namespace setu::kernels {
namespace {

constexpr KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8};

TEST(KvPlace, OfBf16IsWhereItsProductsTakeAPair) {
  constexpr int64_t kDim = 64, kTokens = 32;
  const auto key = [](int64_t token, int64_t dim) {
    return IndexOf(KeyPlace(KvType::kBF16, kDim, kTokens, token), dim);
  };
  EXPECT_EQ(key(0, 0), 0);
  EXPECT_EQ(key(0, 1), 1) << "two dims of a key";
  EXPECT_EQ(key(1, 0), 2) << "then those of the next";
  EXPECT_EQ(key(0, 2), 32) << "sixteen keys to a row";
  EXPECT_EQ(key(16, 0), 16 * kDim) << "sixteen keys to a group";
  const auto value = [](int64_t token, int64_t dim) {
    return IndexOf(ValuePlace(KvType::kBF16, kDim, token), dim);
  };
  EXPECT_EQ(value(1, 0), 1) << "a dim of two keys";
  EXPECT_EQ(value(0, 1), 2);
  EXPECT_EQ(value(2, 0), 2 * kDim);
}

TEST(KvPlace, OfOthersIsDimByDimInKAndTokenByTokenInV) {
  EXPECT_EQ(IndexOf(KeyPlace(KvType::kInt8, 64, 32, 5), 3), 3 * 32 + 5);
  EXPECT_EQ(IndexOf(ValuePlace(KvType::kInt8, 64, 5), 3), 5 * 64 + 3);
}

TEST(KvPlace, IsAnotherForEachValueAndWithinTheHead) {
  for (const KvType type : kTypes) {
    for (const int64_t dim : {6, 7, 64, 80}) {
      for (const int64_t tokens : {16, 48}) {
        const auto end = static_cast<int64_t>(KvHeadBytes(type, dim, tokens) / KvTypeBytes(type));
        std::set<int64_t> keys, values;
        for (int64_t token = 0; token < tokens; ++token) {
          for (int64_t d = 0; d < dim; ++d) {
            keys.insert(IndexOf(KeyPlace(type, dim, tokens, token), d));
            values.insert(IndexOf(ValuePlace(type, dim, token), d));
          }
        }
        for (const std::set<int64_t>& all : {keys, values}) {
          EXPECT_EQ(std::ssize(all), dim * tokens) << KvTypeName(type) << " " << dim;
          EXPECT_GE(*all.begin(), 0);
          EXPECT_LT(*all.rbegin(), end) << KvTypeName(type) << " " << dim;
        }
      }
    }
  }
}

}  // namespace
}  // namespace setu::kernels
