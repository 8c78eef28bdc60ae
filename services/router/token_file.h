// SPDX-License-Identifier: Apache-2.0
// The file of --auth-tokens: a YAML map of tenants and of tokens, these by their digests.
//
//   # A tenant: its weight (1), requests at once and tokens a minute (no bound).
//   acme: [weight=2, requests=64, tokens-per-minute=600000]
//   lab: []
//   # A token, by its SHA-256: whose, and of which priority: high, normal or low.
//   ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad: [acme, high]
#ifndef SETU_SERVICES_ROUTER_TOKEN_FILE_H_
#define SETU_SERVICES_ROUTER_TOKEN_FILE_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/bearer_token.h"
#include "services/router/tenant.h"

namespace setu::router {

struct TokenFile {
  static constexpr size_t kMostBytes = 256 << 10;
  static constexpr size_t kMostTokens = 1024;

  struct Token {
    rpc::TokenDigest digest;
    std::string tenant;  // one of `tenants`
    Priority priority = Priority::kNormal;
  };
  std::map<std::string, Tenant::Limits> tenants;
  std::vector<Token> tokens;
};

// INVALID_ARGUMENT names path, line and what is allowed there, and repeats nothing of the file: it
// may be a token, written in the wrong place.
absl::StatusOr<TokenFile> ParseTokenFile(const std::string& path, const std::string& text);

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_TOKEN_FILE_H_
