// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/bearer_token.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace setu::rpc {
namespace {

constexpr char kHeader[] = "authorization";
constexpr absl::string_view kScheme = "Bearer ";

}  // namespace

std::string NewToken() {
  std::string bits(32, '\0');
  SETU_CHECK(
      RAND_bytes(reinterpret_cast<uint8_t*>(bits.data()), static_cast<int>(bits.size())) == 1,
      "the system has random numbers");
  std::string text = absl::WebSafeBase64Escape(bits);
  return absl::StrCat("setu-", text);
}

TokenDigest DigestOf(absl::string_view token) {
  TokenDigest digest;
  SHA256(reinterpret_cast<const uint8_t*>(token.data()), token.size(), digest.data());
  return digest;
}

bool SameDigest(const TokenDigest& a, const TokenDigest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string HexOf(const TokenDigest& digest) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::optional<TokenDigest> DigestFromHex(absl::string_view hex) {
  TokenDigest digest;
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  const auto value = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  for (size_t i = 0; i < digest.size(); ++i) {
    const int high = value(hex[2 * i]), low = value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return digest;
}

std::optional<std::string> BearerOf(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  if (metadata.count(kHeader) != 1) return std::nullopt;
  const grpc::string_ref said = metadata.find(kHeader)->second;
  const absl::string_view value(said.data(), said.size());
  if (!absl::StartsWithIgnoreCase(value, kScheme)) return std::nullopt;
  return std::string(value.substr(kScheme.size()));
}

void Authorize(grpc::ClientContext& context, const std::string& token) {
  if (!token.empty()) context.AddMetadata(kHeader, absl::StrCat(kScheme, token));
}

}  // namespace setu::rpc
