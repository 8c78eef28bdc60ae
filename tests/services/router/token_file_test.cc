// SPDX-License-Identifier: Apache-2.0
#include "services/router/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace setu::router {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kDigest = rpc::HexOf(rpc::DigestOf("abc"));

std::string Refused(const std::string& text) {
  const auto file = ParseTokenFile("tokens.yaml", text);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(file.status().message());
}

TEST(TokenFile, HasTenantsAndTheirTokens) {
  const auto file = ParseTokenFile(
      "f", absl::StrCat("# whose\n", kDigest, ": [acme, high]\n",
                        "acme: [weight=2, requests=64, tokens-per-minute=600000]\nlab: []\n",
                        rpc::HexOf(rpc::DigestOf("d")), ": lab\n"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tenants.size(), 2u);
  const Tenant::Limits& acme = file->tenants.at("acme");
  EXPECT_EQ(acme.weight, 2u);
  EXPECT_EQ(acme.requests, 64);
  EXPECT_EQ(acme.tokens_per_minute, 600000);
  EXPECT_EQ(file->tenants.at("lab").weight, 1u);
  EXPECT_EQ(file->tenants.at("lab").requests, std::nullopt);
  ASSERT_EQ(file->tokens.size(), 2u);
  EXPECT_EQ(file->tokens[0].digest, rpc::DigestOf("abc"));
  EXPECT_EQ(file->tokens[0].tenant, "acme");
  EXPECT_EQ(file->tokens[0].priority, Priority::kHigh);
  EXPECT_EQ(file->tokens[1].priority, Priority::kNormal);
}

TEST(TokenFile, AnEmptyOneLetsNobodyIn) {
  const auto file = ParseTokenFile("f", "");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->tokens.empty());
}

TEST(TokenFile, WhatIsWrongIsToldByItsLine) {
  EXPECT_THAT(Refused("\n" + kDigest + ": [acme]\n"),
              HasSubstr("tokens.yaml:2: its tenant has no line"));
  EXPECT_THAT(Refused("acme: []\n" + kDigest + ": [acme, urgent]\n"),
              HasSubstr("tokens.yaml:2: a token's priority must be high, normal or low"));
  EXPECT_THAT(Refused(kDigest + ": []\n"), HasSubstr(":1: a token has its tenant"));
  for (const char* wrong : {"weight=0", "weight=x", "weight=1001", "requests=-1",
                            "requests=", "tokens-per-minute=1e6"}) {
    EXPECT_THAT(Refused(absl::StrCat("acme: [", wrong, "]\n")), HasSubstr(" must be 1 to "));
  }
  EXPECT_THAT(Refused("acme: [speed=1]\n"), HasSubstr(":1: a tenant has weight=N, requests=N"));
  for (const char* key : {"a b", "''", "setu-x"}) {
    EXPECT_THAT(Refused(absl::StrCat(key, ": []\n")),
                HasSubstr(":1: a key must be a tenant's name"));
  }
  EXPECT_THAT(Refused("acme: []\nacme: []\n"), HasSubstr("tokens.yaml:2: it must be a YAML map"));
  EXPECT_THAT(Refused("acme: [\n"), HasSubstr("it must be a YAML map"));
}

TEST(TokenFile, ATokenInTheWrongPlaceIsNotRepeated) {
  const std::string token = rpc::NewToken();
  for (const std::string& text :
       {token + ": [acme]\n", token + ": []\n" + token + ": []\n", "acme: [" + token + "]\n",
        "acme: {" + token + ": 1}\n", kDigest + ": [" + token + "]\n",
        kDigest + ": [acme, " + token + "]\n", "acme: [requests=" + token + "]\n"}) {
    EXPECT_THAT(Refused(text), Not(HasSubstr(token)));
  }
}

TEST(TokenFile, IsBounded) {
  std::string text = "acme: []\n";
  for (size_t i = 0; i <= TokenFile::kMostTokens; ++i) {
    absl::StrAppend(&text, rpc::HexOf(rpc::DigestOf(absl::StrCat(i))), ": acme\n");
  }
  EXPECT_THAT(Refused(text), HasSubstr("it has 1025 tokens; at most 1024 are allowed"));
}

}  // namespace
}  // namespace setu::router
