// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/bearer_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/ascii.h"

namespace setu::rpc {
namespace {

using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

TEST(BearerToken, IsNewEachTimeAndFitsAHeader) {
  const std::string token = NewToken();
  EXPECT_THAT(token, ::testing::StartsWith("setu-"));
  EXPECT_EQ(token.size(), 5u + 43u) << "256 bits, 6 a character";
  EXPECT_TRUE(std::all_of(token.begin(), token.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_';
  })) << token;
  EXPECT_NE(token, NewToken());
}

// FIPS 180-4's example.
TEST(BearerToken, DigestIsSha256) {
  EXPECT_EQ(HexOf(DigestOf("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(BearerToken, DigestsThatDifferAnywhereAreNotTheSame) {
  const TokenDigest digest = DigestOf("abc");
  EXPECT_TRUE(SameDigest(digest, DigestOf("abc")));
  for (size_t i = 0; i < digest.size(); ++i) {
    TokenDigest other = digest;
    other[i] ^= 1;
    EXPECT_FALSE(SameDigest(digest, other)) << i;
  }
}

TEST(BearerToken, HexIsReadBackAndNothingElseIs) {
  const TokenDigest digest = DigestOf("abc");
  EXPECT_EQ(DigestFromHex(HexOf(digest)), digest);
  const std::string hex = HexOf(digest);
  for (const std::string& wrong :
       {std::string(), hex.substr(1), hex + "0", "x" + hex.substr(1), "B" + hex.substr(1)}) {
    EXPECT_EQ(DigestFromHex(wrong), std::nullopt) << wrong;
  }
}

TEST(BearerToken, IsTakenFromTheOneHeaderThatNamesIt) {
  EXPECT_EQ(BearerOf(Metadata{{"authorization", "Bearer a b"}}), "a b");
  EXPECT_EQ(BearerOf(Metadata{{"authorization", "bearer a"}}), "a");
  EXPECT_EQ(BearerOf(Metadata{{"authorization", "Bearer "}}), "");
  EXPECT_EQ(BearerOf(Metadata{}), std::nullopt);
  EXPECT_EQ(BearerOf(Metadata{{"authorization", "Basic a"}}), std::nullopt);
  EXPECT_EQ(BearerOf(Metadata{{"authorization", "Bearer"}}), std::nullopt);
  EXPECT_EQ(BearerOf(Metadata{{"authorization", "Bearer a"}, {"authorization", "Bearer a"}}),
            std::nullopt);
}

}  // namespace
}  // namespace setu::rpc
